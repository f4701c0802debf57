import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { Kvm } from "@nats-io/kv"
import type { NatsConnection } from "@nats-io/transport-node"
import { connect, createInbox, headers } from "@nats-io/transport-node"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { findNatsServer } from "../../src/broker/binary.ts"
import { defaultTopology, wanted } from "../../src/broker/topology.ts"
import { makeNames } from "../../src/domain/names.ts"
import { launch } from "../nats-server.ts"

const exec = promisify(execFile)
const natsConf = fileURLToPath(new URL("../../nats.conf", import.meta.url))

let directory = ""
let binary = ""
let text = ""
beforeAll(async () => {
  directory = await mkdtemp(join(tmpdir(), "petrel-test-conf-"))
  binary = (await Effect.runPromise(findNatsServer())).path
  text = await readFile(natsConf, "utf8")
})
afterAll(() => rm(directory, { recursive: true, force: true }))

/** Lines that are configuration and not prose begin with # and no single space. */
const takenIntoUse = (block: string): string => block.replaceAll(/^#(?! \S|$)/gm, "")

const onFreePorts = (configuration: string) =>
  configuration
    .replace("port: 4222", "port: -1")
    .replace('http: "127.0.0.1:8222"', 'http: "127.0.0.1:-1"')

describe("nats.conf", () => {
  it("is valid as it is", async () => {
    assert.include((await exec(binary, ["-c", natsConf, "-t"])).stderr, "is valid")
  })

  it("runs as it is, on loopback and with its store beside it", async () => {
    const file = join(directory, "as-it-is.conf")
    await writeFile(file, onFreePorts(text))
    const server = await launch(binary, file)
    try {
      const nc = await connect({ servers: `nats://127.0.0.1:${server.port}` })
      const jsm = await jetstreamManager(nc)
      for (const { stream } of wanted(makeNames(), defaultTopology, nc.info?.max_payload ?? 0))
        await jsm.streams.add(stream)
      assert.strictEqual(nc.info?.host, "127.0.0.1")
      await nc.close()
      assert.isNotEmpty(
        await readFile(
          join(directory, ".petrel/broker/jetstream/$G/streams/PETREL_EVENTS/meta.inf")
        )
      )
    } finally {
      await server.end()
    }
  })

  it("is valid with its TLS block taken into use", async () => {
    const key = join(directory, "broker.key")
    const certificate = join(directory, "broker.crt")
    await exec("openssl", [
      ...["req", "-x509", "-newkey", "ed25519", "-nodes", "-days", "1", "-subj", "/CN=localhost"],
      ...["-keyout", key, "-out", certificate]
    ])
    const block = /^#tls \{\n(?:#.*\n)*?#\}$/m
    assert.match(text, block)
    const file = join(directory, "tls.conf")
    await writeFile(
      file,
      text
        .replace(block, takenIntoUse)
        .replace("/etc/petrel/tls/broker.crt", certificate)
        .replace("/etc/petrel/tls/broker.key", key)
    )
    assert.include((await exec(binary, ["-c", file, "-t"])).stderr, "is valid")
  })
})

describe("nats.conf with its accounts taken into use", () => {
  const roles = ["operator", "worker", "publisher", "alerts"] as const
  const names = makeNames()
  let server: Awaited<ReturnType<typeof launch>>
  let operator: NatsConnection
  const opened: Array<NatsConnection> = []

  const as = async (user: (typeof roles)[number] | undefined, inboxPrefix = "_INBOX") => {
    const nc = await connect({
      servers: `nats://127.0.0.1:${server.port}`,
      reconnect: false,
      inboxPrefix,
      ...(user === undefined ? {} : { user, pass: `${user}-1` })
    })
    opened.push(nc)
    return nc
  }

  const refused = async (what: Promise<unknown>) => {
    const outcome = await what.then(
      () => "was allowed",
      () => "refused"
    )
    assert.strictEqual(outcome, "refused")
  }

  beforeAll(async () => {
    const [before, after] = text.split(/^(?=#accounts \{$)/m)
    assert(before !== undefined && after !== undefined)
    const file = join(directory, "accounts.conf")
    // What comes after the block is about further accounts.
    const block = after.slice(0, after.search(/^#\}$/m) + 2)
    await writeFile(file, onFreePorts(before + takenIntoUse(block)))
    const passwords = roles.map((role) => [`PETREL_${role.toUpperCase()}_PASSWORD`, `"${role}-1"`])
    server = await launch(binary, file, Object.fromEntries(passwords))
    operator = await as("operator")
    const jsm = await jetstreamManager(operator)
    const topology = { ...defaultTopology, partitions: 1 }
    for (const { stream, consumer } of wanted(names, topology, operator.info?.max_payload ?? 0)) {
      await jsm.streams.add(stream)
      if (consumer !== undefined) await jsm.consumers.add(stream.name, consumer)
    }
  })
  afterAll(async () => {
    await Promise.all(opened.map((nc) => nc.close()))
    await server.end()
  })

  it("lets nobody in without a password", async () => {
    await refused(as(undefined))
  })

  it("lets a publisher publish its tenant's events, and nothing else", async () => {
    const nc = await as("publisher", "_INBOX_publisher")
    const js = jetstream(nc, { timeout: 1_000 })
    const ack = await js.publish("events.default.invoice.paid", "{}")
    assert.strictEqual(ack.stream, names.events)
    await refused(js.publish("events.other.invoice.paid", "{}"))
    await refused(js.publish("petrel.dead.default.ep", "{}"))
    await refused(nc.request("$JS.API.STREAM.NAMES", "", { timeout: 1_000 }))
  })

  it("lets a worker do a worker's work, but make no streams and no events", async () => {
    const nc = await as("worker")
    const js = jetstream(nc, { timeout: 1_000 })
    const jsm = await jetstreamManager(nc)
    const delivery = names.subjects.delivery(0, "default", "ep")

    assert.isNotEmpty(await jsm.streams.names().next())
    await jsm.streams.info(names.deliveries(0))
    await jsm.consumers.info(names.deliveries(0), names.deliverConsumer)

    const schedule = headers()
    schedule.set("Nats-Schedule", "@at 2999-01-01T00:00:00Z")
    schedule.set("Nats-Schedule-Target", delivery)
    await js.publish(names.subjects.later(0, "1"), "{}", { headers: schedule })
    await js.publish(delivery, "{}")
    await js.publish(names.subjects.dead("default", "ep"), "{}")
    await js.publish(names.subjects.fact("default", "ep", "ok", "delivered"), "{}")
    for (const [stream, consumer] of [
      [names.events, names.routerConsumer],
      [names.deliveries(0), names.deliverConsumer]
    ] as const) {
      if (stream === names.events) await jetstream(operator).publish("events.default.a", "{}")
      const message = await (await js.consumers.get(stream, consumer)).next({ expires: 5_000 })
      assert.isTrue(await message?.ackAck())
    }

    const waiting = names.subjects.backlog(0, "default", "ep")
    await js.publish(waiting, "{}")
    assert.strictEqual((await jsm.streams.purge(names.backlog(0), { filter: waiting })).purged, 1)
    for (const stream of [names.events, names.history, names.dead])
      await refused(jsm.streams.purge(stream))

    await jsm.streams.getMessage(names.dead, { seq: 1 })
    await jsm.direct.getMessage(names.history, { seq: 1 })
    const ordered = await js.consumers.get(names.history)
    assert.isNotNull(await ordered.next({ expires: 5_000 }))
    for (const name of Object.values(names.buckets)) {
      const bucket = await new Kvm(nc).open(name, { allow_direct: false })
      const revision = await bucket.put("default.ep", "{}")
      assert.strictEqual((await bucket.get("default.ep"))?.revision, revision)
      const watch = await bucket.watch()
      for await (const entry of watch) {
        assert.strictEqual(entry.key, "default.ep")
        break
      }
    }

    nc.subscribe(names.subjects.ask(0), {
      callback: (_, message) => {
        for (const part of ["1", "2", "3"]) message.respond(part)
      }
    })
    await nc.flush()
    const answer = operator.subscribe(createInbox(), { max: 3 })
    operator.publish(names.subjects.ask(0), "?", { reply: answer.getSubject() })
    const parts: Array<string> = []
    for await (const message of answer) parts.push(message.string())
    assert.deepStrictEqual(parts, ["1", "2", "3"])

    await refused(js.publish("events.default.invoice.paid", "{}"))
    await refused(
      nc.request("$JS.API.STREAM.CREATE.X", '{"name":"X","subjects":["x"]}', { timeout: 1_000 })
    )
    await refused(nc.request(`$JS.API.STREAM.DELETE.${names.history}`, "", { timeout: 1_000 }))
  })

  it("lets alerts hear of failures, and of nothing else", async () => {
    const nc = await as("alerts")
    const failures = nc.subscribe("petrel.failures.default.>", { max: 1 })
    await nc.flush()
    const fact = names.subjects.fact("default", "ep", "failure", "attempt-failed")
    await jetstream(operator).publish(fact, "bad news")
    for await (const message of failures) {
      assert.strictEqual(
        message.subject,
        names.subjects.failures("default", "ep", "attempt-failed")
      )
      assert.strictEqual(message.string(), "bad news")
    }
    const refusal = new Promise<Error | null>((heard) =>
      nc.subscribe("events.>", { callback: (error) => heard(error) })
    )
    assert.strictEqual((await refusal)?.name, "PermissionViolationError")
    await refused(nc.request("$JS.API.INFO", "", { timeout: 1_000 }))
  })
})
