import { readFile } from "node:fs/promises"
import { assert, describe, it } from "@effect/vitest"
import { JetStreamApiError, jetstream, jetstreamManager } from "@nats-io/jetstream"
import { Kvm } from "@nats-io/kv"
import type { NatsConnection } from "@nats-io/transport-node"
import { createInbox, headers } from "@nats-io/transport-node"
import { Effect } from "effect"
import { afterAll, beforeAll } from "vitest"
import { defaultTopology, wanted } from "../../src/broker/topology.ts"
import { makeNames } from "../../src/domain/names.ts"
import { parse } from "../cli/command-line.ts"
import { run } from "../cli/in-process.ts"
import type { AccountsServer } from "../kit/nats-accounts.ts"
import { startWithAccounts } from "../kit/nats-accounts.ts"

const names = makeNames()

const refused = async (what: Promise<unknown>) => {
  const outcome = await what.then(
    () => "was allowed",
    () => "refused"
  )
  assert.strictEqual(outcome, "refused")
}

/** Makes all streams, as `petrel init` does. */
const install = async (operator: NatsConnection) => {
  const jsm = await jetstreamManager(operator)
  const topology = { ...defaultTopology, partitions: 1 }
  for (const { stream, consumer } of wanted(names, topology, operator.info?.max_payload ?? 0)) {
    await jsm.streams.add(stream)
    if (consumer !== undefined) await jsm.consumers.add(stream.name, consumer)
  }
  return jsm
}

/** What each stream of the account holds, by its name. */
const contents = async (operator: NatsConnection) => {
  const jsm = await jetstreamManager(operator)
  const found: Record<string, number> = {}
  for await (const { config, state } of jsm.streams.list()) found[config.name] = state.messages
  return found
}

describe("nats.conf with its accounts taken into use", () => {
  let server: AccountsServer
  let operator: NatsConnection
  beforeAll(async () => {
    server = await startWithAccounts()
    operator = await server.as("operator")
    await install(operator)
  })
  afterAll(() => server.stop())

  it("lets nobody in without a password", async () => {
    await refused(server.as())
  })

  it("lets a publisher publish its tenant's events, and nothing else", async () => {
    const nc = await server.as("acme")
    const js = jetstream(nc, { timeout: 1_000 })
    const options = { msgID: "acme.invoice-42-paid" }
    const ack = await js.publish("events.acme.invoice.paid", "{}", options)
    assert.strictEqual(ack.stream, names.events)
    assert.isTrue((await js.publish("events.acme.invoice.paid", "{}", options)).duplicate)
    await refused(js.publish("events.other.invoice.paid", "{}"))
    await refused(js.publish("petrel.dead.default.ep", "{}"))
    const asked = await nc.request("$JS.API.STREAM.NAMES", "", { timeout: 1_000 })
    assert.include(asked.string(), "JetStream not enabled for account")
  })

  it.live("tells a tenant's user that commands need another one", () =>
    Effect.gen(function* () {
      const args = ["publish", "acme", "invoice.paid", "{}", "--nats", server.url("acme")]
      const { code, err } = yield* run(...args)
      assert.strictEqual(code, 1)
      const said = err.at(-1) ?? ""
      assert.include(said, "the account of this user has no JetStream")
      assert.include(said, "events.<tenant>.<type>")
      assert.notInclude(said, "-js")
    })
  )

  it("lets a publisher reach nothing by its reply subject", async () => {
    const jsm = await jetstreamManager(operator)
    await jetstream(operator).publish("$KV.petrel_endpoints.other.ep", "configuration")
    await jetstream(operator).publish(names.subjects.dead("other", "ep"), "{}")
    const before = await contents(operator)
    const nc = await server.as("acme")
    const targets = [
      "events.other.invoice.paid",
      "$KV.petrel_endpoints.other.ep",
      "$KV.petrel_workers.layout",
      names.subjects.fact("other", "ep", "ok", "delivered"),
      names.subjects.dead("other", "ep"),
      names.subjects.delivery(0, "other", "ep"),
      names.subjects.backlog(0, "other", "ep"),
      `$JS.API.STREAM.PURGE.${names.dead}`,
      `$JS.API.STREAM.DELETE.${names.history}`
    ]
    for (const reply of targets) nc.publish("events.acme.invoice.paid", "", { reply })
    // Stored after them, and acknowledged after what they led to.
    await jetstream(nc).publish("events.acme.invoice.paid", "{}")
    await operator.flush()
    assert.deepStrictEqual(await contents(operator), {
      ...before,
      [names.events]: (before[names.events] ?? 0) + targets.length + 1
    })
    const stored = await jsm.streams.getMessage(`KV_${names.buckets.endpoints}`, {
      last_by_subj: "$KV.petrel_endpoints.other.ep"
    })
    assert.strictEqual(stored?.string(), "configuration")
  })

  it("lets a worker do a worker's work, but make no streams and no events", async () => {
    const nc = await server.as("worker")
    const js = jetstream(nc, { timeout: 1_000 })
    const jsm = await jetstreamManager(nc)
    const delivery = names.subjects.delivery(0, "default", "ep")

    assert.isNotEmpty(await jsm.streams.names().next())
    await jsm.streams.info(names.deliveries(0))
    await jsm.consumers.info(names.deliveries(0), names.deliverConsumer)

    const schedule = headers()
    schedule.set("Nats-Schedule", "@at 2999-01-01T00:00:00Z")
    schedule.set("Nats-Schedule-Target", delivery)
    await js.publish(names.subjects.schedule(0, "1"), "{}", { headers: schedule })
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
    for (const stream of [names.history, names.dead]) await refused(jsm.streams.purge(stream))
    // Events that were routed and are older than they are kept.
    assert.strictEqual((await jsm.streams.purge(names.events, { seq: 1 })).purged, 0)
    // Asks whether the broker can write there, of a message that is not there.
    const gone = jsm.streams.deleteMessage(names.events, Number.MAX_SAFE_INTEGER, false)
    assert.instanceOf(await gone.catch((error: unknown) => error), JetStreamApiError)

    await jsm.streams.getMessage(names.dead, { seq: 1 })
    await jsm.direct.getMessage(names.history, { seq: 1 })
    const ordered = await js.consumers.get(names.history)
    assert.isNotNull(await ordered.next({ expires: 5_000 }))
    const { jobs, sources, tokens, ...workersBuckets } = names.buckets
    for (const name of [jobs, sources, tokens])
      await refused(js.publish(`$KV.${name}.0123456789abcdef`, "{}"))
    for (const name of Object.values(workersBuckets)) {
      const bucket = await new Kvm(nc).open(name, { allow_direct: false })
      const revision = await bucket.put("default.ep", "{}")
      assert.strictEqual((await bucket.get("default.ep"))?.revision, revision)
      const watch = await bucket.watch({ key: "default.ep" })
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
    const nc = await server.as("alerts")
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

  it("keeps the history from what a worker may have the broker do for it", async () => {
    const worker = await server.as("worker")
    const js = jetstream(worker)
    await js.publish(names.subjects.fact("acme", "ep", "ok", "delivered"), "{}")
    const before = await contents(operator)
    // A stored message that is read with such a reply subject becomes a request to the broker: no
    // permission of the worker counts for it. What is refused for the history works for others.
    const { seq } = await js.publish(names.subjects.dead("acme", "tool"), "")
    for (const stream of [names.history, names.dead]) {
      const reply = `$JS.API.STREAM.PURGE.${stream}`
      worker.publish(`$JS.API.DIRECT.GET.${names.dead}`, JSON.stringify({ seq }), { reply })
    }
    while ((await contents(operator))[names.dead] !== 0) await worker.flush()
    assert.strictEqual((await contents(operator))[names.history], before[names.history])
    const jsm = await jetstreamManager(operator)
    await refused(jsm.streams.purge(names.history))
    await refused(jsm.streams.deleteMessage(names.history, 1))
  })
})

/** What each user may not publish, beside what its story above tells. */
const forbidden = {
  worker: [
    "events.acme.invoice.paid",
    "$KV.petrel_tokens.0123456789abcdef",
    "$KV.petrel_jobs.job",
    "petrel.command.0",
    "petrel.projection",
    "petrel.api.v1._.system.status",
    `$JS.API.STREAM.CREATE.X`,
    `$JS.API.STREAM.UPDATE.${names.history}`,
    `$JS.API.STREAM.DELETE.${names.history}`,
    `$JS.API.STREAM.PURGE.${names.dead}`,
    `$JS.API.STREAM.MSG.DELETE.${names.history}`
  ],
  console: [
    "events.acme.petrel.alert.raised",
    "petrel.alert-events.acme.petrel.alert.raised",
    "petrel.dead.acme.ep",
    "petrel.schedules.0.1",
    "$KV.petrel_tokens.0123456789abcdef",
    "$KV.petrel_retries.acme.ep",
    "$KV.petrel_alerts.acme",
    "$KV.petrel_workers.layout",
    "petrel.api.v1._.system.status",
    `$JS.API.STREAM.CREATE.X`,
    `$JS.API.STREAM.UPDATE.${names.history}`,
    `$JS.API.STREAM.DELETE.${names.history}`,
    `$JS.API.STREAM.PURGE.${names.events}`,
    `$JS.API.STREAM.MSG.DELETE.${names.events}`
  ],
  alerts: ["events.acme.a", "$JS.API.INFO", "petrel.failures.acme.ep.x"],
  access_console: [
    "$KV.other.key",
    "petrel.api.v1._.system.status",
    "$JS.API.STREAM.CREATE.X",
    "$JS.API.STREAM.UPDATE.KV_petrel_tokens",
    "$JS.API.STREAM.DELETE.KV_petrel_tokens",
    "$JS.API.STREAM.PURGE.KV_petrel_tokens",
    "$JS.API.STREAM.MSG.DELETE.KV_petrel_tokens",
    "$JS.API.CONSUMER.CREATE.KV_other"
  ]
} as const

/** What each user may not hear. */
const unheard = {
  worker: ["events.>", "$KV.>", "petrel.history.>", "petrel.api.>", "$JS.ACK.>"],
  console: ["petrel.api.v1.>", "$SRV.>", "petrel.ask.*", "events.>", "$KV.>"],
  alerts: ["events.>", "petrel.history.>", "_INBOX.>", "petrel.api.>"],
  access_console: ["$KV.>", "events.>"]
} as const

describe("nats.conf with its accounts taken into use, what is forbidden", () => {
  let server: AccountsServer
  beforeAll(async () => {
    server = await startWithAccounts()
    await install(await server.as("operator"))
  })
  afterAll(() => server.stop())

  for (const user of ["worker", "console", "alerts", "access_console"] as const)
    it(`is refused to ${user}`, async () => {
      const nc = await server.as(user)
      const lines = (kind: string, subject: string) =>
        server.violations.filter(
          (line) =>
            line.includes(`user:${user}"`) &&
            line.includes(`${kind} Violation - Subject "${subject}"`)
        )
      for (const subject of forbidden[user]) nc.publish(subject, "")
      for (const subject of unheard[user]) nc.subscribe(subject, { callback: () => undefined })
      await nc.flush()
      const expected = forbidden[user].length + unheard[user].length
      const { violations } = server
      while (violations.filter((line) => line.includes(`user:${user}"`)).length < expected)
        await nc.flush()
      for (const subject of forbidden[user]) assert.lengthOf(lines("Publish", subject), 1, subject)
      for (const subject of unheard[user])
        assert.lengthOf(lines("Subscription", subject), 1, subject)
    })
})

describe("nats.conf with a further name for a tenant's events", () => {
  it("maps what its account publishes to the tenant's events", async () => {
    const line = '{ service: { account: PETREL, subject: "events.acme.>" } }'
    const server = await startWithAccounts((text) => {
      assert.include(text, line)
      return text.replace(line, `${line.slice(0, -2)}, to: "events.>" }`)
    })
    try {
      const jsm = await install(await server.as("operator"))
      const js = jetstream(await server.as("acme"), { timeout: 1_000 })
      const { seq } = await js.publish("events.invoice.paid", "{}")
      const stored = await jsm.streams.getMessage(names.events, { seq })
      assert.strictEqual(stored?.subject, "events.acme.invoice.paid")
    } finally {
      await server.stop()
    }
  })
})

/** Makes what a file of deploy/ says, as deploy/README.md does. */
const make = async (connection: NatsConnection, request: string, file: string) => {
  const body = await readFile(new URL(`../../deploy/${file}`, import.meta.url), "utf8")
  const answer = await connection.request(`$JS.API.${request}`, body, { timeout: 2_000 })
  assert.notProperty(answer.json<object>(), "error", answer.string())
}

describe("the copy of the history", () => {
  it("keeps the facts when the history itself is deleted, by a worker too", async () => {
    const server = await startWithAccounts((text) =>
      text.replace("max_file_store: 20GB", "max_file_store: 26GB")
    )
    try {
      const operator = await server.as("operator")
      await install(operator)
      await make(operator, `CONSUMER.CREATE.${names.history}.copy`, "history-copy-consumer.json")
      const connection = await server.as("auditor")
      await make(connection, `STREAM.CREATE.${names.history}`, "history-copy.json")
      const auditor = await jetstreamManager(connection)
      const worker = await server.as("worker")
      const js = jetstream(worker)
      const subject = names.subjects.fact("acme", "ep", "ok", "delivered")
      const fact = { v: 1, kind: "delivered", at: Date.now(), tenant: "acme", endpoint: "ep" }
      const at = new Date(fact.at).toISOString()
      for (let attempt = 1; attempt <= 3; attempt++)
        await js.publish(subject, JSON.stringify({ ...fact, attempt }))
      const copied = async () => (await auditor.streams.info(names.history)).state.messages
      while ((await copied()) < 3) await worker.flush()

      const { seq } = await js.publish(names.subjects.dead("acme", "tool"), "")
      const reply = `$JS.API.STREAM.DELETE.${names.history}`
      worker.publish(`$JS.API.DIRECT.GET.${names.dead}`, JSON.stringify({ seq }), { reply })
      while (names.history in (await contents(operator))) await worker.flush()
      await refused(auditor.streams.purge(names.history))
      const { code, out } = await Effect.runPromise(
        run("history", "export", "--nats", server.url("auditor"))
      )
      assert.strictEqual(code, 0)
      assert.deepStrictEqual(
        out.map((line) => parse(line)),
        [1, 2, 3].map((attempt) => ({ seq: attempt, ...fact, at, attempt }))
      )
    } finally {
      await server.stop()
    }
  })
})
