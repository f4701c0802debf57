import { execFile } from "node:child_process"
import { mkdtemp, readFile, rm, stat, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { assert, describe, it } from "@effect/vitest"
import { jetstream, jetstreamManager } from "@nats-io/jetstream"
import { Kvm } from "@nats-io/kv"
import type { NatsConnection } from "@nats-io/transport-node"
import { connect } from "@nats-io/transport-node"
import { Effect, Schema } from "effect"
import { nth } from "../../../kit/engine.ts"
import { isLong } from "../../../kit/long.ts"
import { run } from "../../in-process.ts"
import { runProcess, start } from "../../running.ts"

const exec = promisify(execFile)
const MiB = 1024 ** 2

const temporary = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "petrel-test-dev-"))),
  (directory) => Effect.promise(() => rm(directory, { recursive: true, force: true }))
)

/** Connects with the token that the URL has, if any. */
const connected = <A>(url: string, use: (connection: NatsConnection) => Promise<A>) =>
  Effect.acquireUseRelease(
    Effect.promise(() => {
      const { username: token } = new URL(url)
      return connect({ servers: url, ...(token === "" ? {} : { token }) })
    }),
    (connection) => Effect.promise(() => use(connection)),
    (connection) => Effect.promise(() => connection.close())
  )

/** How many events there are, and where the sample endpoint's receiver is. */
const look = (url: string) =>
  connected(url, async (connection) => {
    const jsm = await jetstreamManager(connection)
    const { state } = await jsm.streams.info("PETREL_EVENTS")
    const bucket = await new Kvm(connection).open("petrel_endpoints")
    const entry = await bucket.get("default.sample")
    return { events: state.messages, sample: entry?.json<{ readonly url: string }>().url }
  })

const publish = (url: string, subject: string, body: string) =>
  connected(url, (connection) => jetstream(connection).publish(subject, body))

const Printed = Schema.fromJsonString(
  Schema.Struct({
    event: Schema.optionalKey(Schema.String),
    kind: Schema.optionalKey(Schema.String),
    attempt: Schema.optionalKey(Schema.Number),
    nats: Schema.optionalKey(Schema.String),
    sample: Schema.optionalKey(Schema.String),
    seq: Schema.optionalKey(Schema.Number)
  })
)
const decode = Schema.decodeUnknownSync(Printed)

const natsUrl = (lines: ReadonlyArray<string>) => {
  const url = /nats:\/\/127\.0\.0\.1:\d+/.exec(lines.join("\n"))?.[0]
  assert.isDefined(url)
  return url
}

/** Ctrl-C to the end, in ms. */
const stop = Effect.fnUntraced(function* (command: Effect.Success<ReturnType<typeof start>>) {
  const asked = performance.now()
  yield* command.signal("SIGINT")
  return { code: yield* command.ended, took: performance.now() - asked }
})

/** What a broker has for events and refuses beyond: of 32 MiB more, whether it takes them. */
const boundsAt = (url: string) =>
  connected(url, async (connection) => {
    const { streams } = await jetstreamManager(connection)
    const { config } = await streams.info("PETREL_EVENTS")
    const refused = await streams.add({ name: "X", subjects: ["x"], max_bytes: 2 ** 25 }).then(
      () => "no",
      () => "yes"
    )
    return [config.max_bytes / MiB, config.discard, refused]
  })

describe("petrel dev", () => {
  it.live(
    "shows sample events and their retries once, says who may read them, and goes on where it was",
    () =>
      Effect.gen(function* () {
        const data = join(yield* temporary, "data")

        const first = yield* start("dev", "--nats-port", "0", "--data", data)
        yield* first.until((out) => out.some((line) => line.includes("petrel publish")))
        const of = (event: string) =>
          first.out.filter((line) => line.includes(`${event} → default/sample`))
        const [once, twice, thrice] = [
          of("default.user-7"),
          of("default.order-17"),
          of("default.invoice-42")
        ]
        assert.deepStrictEqual([once.length, twice.length, thrice.length], [1, 2, 3])
        assert.match(nth(once, 0), / #1 {2}200 .* delivered: user\.created$/)
        assert.match(nth(twice, 0), / #1 {2}503 .* next in [\d.]+ m?s$/)
        assert.match(nth(thrice, 1), / #2 {2}503 .* next in [\d.]+ m?s$/)
        assert.match(nth(thrice, 2), / #3 {2}200 .* delivered: invoice\.paid$/)
        assert.include(
          first.out.join("\n"),
          "Everybody on this machine may read and change all of it, secrets too"
        )
        const before = yield* look(natsUrl(first.out))
        assert.strictEqual(before.events, 3)
        const end = yield* stop(first)
        assert.strictEqual(end.code, 0)
        assert.isBelow(end.took, 5_000)
        assert.match(first.err.join("\n"), /Stopped, first the worker, then the broker/)

        const second = yield* start("dev", "--nats-port", "0", "--data", data, "--json")
        yield* second.until((out) => out.length > 0)
        const ready = decode(nth(second.out, 0))
        assert.strictEqual(ready.event, "ready")
        assert.strictEqual(ready.sample, before.sample)
        const nats = ready.nats ?? ""
        yield* publish(nats, "events.default.thing.happened", '{"fail":1}')
        const facts = (lines: ReadonlyArray<string>) => lines.slice(1).map((line) => decode(line))
        yield* second.until((out) => facts(out).some(({ kind }) => kind === "delivered"))
        assert.deepStrictEqual(
          facts(second.out).map(({ attempt, event, kind }) => [
            event?.split("_")[1],
            kind,
            attempt
          ]),
          [
            ["4", "routed", undefined],
            ["4", "attempt-failed", 1],
            ["4", "delivered", 2]
          ]
        )
        assert.deepStrictEqual(yield* look(nats), { events: 4, sample: before.sample })
        assert.strictEqual((yield* stop(second)).code, 0)
      }).pipe(Effect.scoped)
  )

  it.live(
    "asks all for a token with --token, keeps it for the next time, and keeps to its share of the disk",
    () =>
      Effect.gen(function* () {
        const data = join(yield* temporary, "data")
        const flags = ["--nats-port", "0", "--data", data, "--no-sample"]
        const isReady = (out: ReadonlyArray<string>) =>
          out.some((line) => line.includes("petrel publish"))
        const closed = yield* start("dev", ...flags, "--token", "--store", "256MiB")
        yield* closed.until(isReady)
        const url = natsUrl([nth(closed.out, 0)])
        const refused = yield* Effect.promise(() =>
          connect({ servers: url, reconnect: false }).then(
            (connection) => connection.close().then(() => "was let in"),
            (error: Error) => error.name
          )
        )
        assert.strictEqual(refused, "AuthorizationError")
        const file = join(data, "token")
        const token = (yield* Effect.promise(() => readFile(file, "utf8"))).trim()
        const config = join(data, "broker", "nats-server.conf")
        for (const path of [file, config])
          assert.strictEqual((yield* Effect.promise(() => stat(path))).mode & 0o777, 0o600, path)
        const { stdout: processes } = yield* Effect.promise(() => exec("ps", ["-eo", "args"]))
        assert.include(processes, config)
        assert.notInclude(processes, token)
        assert.notInclude([...closed.out, ...closed.err].join("\n"), token)

        const hint = closed.out.find((line) => line.includes("export NATS_URL=")) ?? ""
        const { stdout: there } = yield* Effect.promise(() =>
          exec("sh", ["-c", `${hint}; printf %s "$NATS_URL"`])
        )
        assert.strictEqual(there, url.replace("//", `//${token}@`))
        const published = yield* run("publish", "default", "a", "{}", "--nats", there)
        assert.strictEqual(published.code, 0, published.err.join("\n"))
        yield* closed.until((out) => out.some((line) => / for nobody: no endpoint/.test(line)))
        assert.deepStrictEqual(yield* boundsAt(there), [128, "new", "yes"])
        yield* stop(closed)

        const more = ["--token", "--json", "--store", "400MiB"]
        const again = yield* start("dev", ...flags, ...more)
        yield* again.until((out) => out.length > 0)
        const ready = JSON.parse(nth(again.out, 0))
        assert.deepInclude(ready, {
          ...{ tokenFile: file, storeBytes: 400 * MiB, eventBytes: 200 * MiB }
        })
        const withToken = ready.nats.replace("//", `//${token}@`)
        assert.deepStrictEqual(yield* boundsAt(withToken), [200, "new", "no"])
        assert.strictEqual((yield* Effect.promise(() => readFile(file, "utf8"))).trim(), token)
        yield* stop(again)

        if (isLong) {
          const asBefore = yield* start("dev", ...flags, "--json")
          yield* asBefore.until((out) => out.length > 0)
          assert.include(JSON.parse(nth(asBefore.out, 0)), { storeBytes: 400 * MiB })
          yield* stop(asBefore)
        }
        const less = yield* runProcess(
          "dev",
          "--nats-port",
          "0",
          "--data",
          data,
          "--store",
          "64MiB"
        )
        assert.match(
          nth(less.err, 0),
          /^petrel: --store 64 MiB is less than the 400 MiB of the last /
        )
      }).pipe(Effect.scoped)
  )

  it.live("says what to do where its data or its port is in use, and ends with its broker", () =>
    Effect.gen(function* () {
      const directory = yield* temporary
      const data = join(directory, "data")
      const first = yield* start("dev", "--nats-port", "0", "--data", data, "--no-sample")
      yield* first.until((out) => out.some((line) => line.includes("petrel publish")))
      const { port } = new URL(natsUrl(first.out))

      const sameData = yield* runProcess("dev", "--nats-port", "0", "--data", data)
      assert.strictEqual(sameData.code, 1)
      assert.deepStrictEqual(sameData.err, [
        `petrel: another \`petrel dev\` is using ${data}: stop that one, or choose another directory with --data`
      ])

      const samePort = yield* runProcess(
        "dev",
        "--nats-port",
        port,
        "--data",
        join(directory, "other")
      )
      assert.strictEqual(samePort.code, 1)
      assert.deepStrictEqual(samePort.err, [
        `petrel: port ${port} on 127.0.0.1 is taken: stop what listens there, or choose another port (--nats-port 4300)`
      ])

      yield* publish(natsUrl(first.out), "events.default.thing.happened", "{}")
      yield* first.until((out) => out.some((line) => / for nobody: no endpoint/.test(line)))
      assert.strictEqual((yield* look(natsUrl(first.out))).sample, undefined)

      const pid = Number(
        yield* Effect.promise(() => readFile(join(data, "broker", "nats-server.pid"), "utf8"))
      )
      const killed = performance.now()
      process.kill(pid, "SIGKILL")
      assert.strictEqual(yield* first.ended, 1)
      const said = first.err.join("\n")
      assert.include(said, "the broker has stopped by itself (exit code 137)")
      assert.notInclude(said, "cut off")
      // It takes some 50 ms; to give back each lease took a second, and the connection another.
      assert.isBelow(performance.now() - killed, 5_000)

      // A stream whose files are damaged is not there for the broker.
      const meta = join(data, "broker", "jetstream", "$G", "streams", "PETREL_DEAD", "meta.inf")
      yield* Effect.promise(() => writeFile(meta, "damaged"))
      const again = yield* start("dev", "--nats-port", "0", "--data", data, "--no-sample")
      yield* again.until((out) => out.some((line) => line.includes("petrel publish")))
      assert.include(
        again.err,
        "Warning: stream PETREL_DEAD was missing, and was made again: the dead letters are lost; the history still names each"
      )

      yield* Effect.promise(() =>
        rm(join(data, "broker", "jetstream"), { recursive: true, force: true })
      )
      assert.strictEqual(yield* again.ended, 1)
      assert.include(again.err.join("\n"), "were removed while it ran: all that they held is lost")
    }).pipe(Effect.scoped)
  )
})
