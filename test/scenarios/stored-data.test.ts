/*
 * The data of a feature level, as a version left it: a broker's store with endpoints of many kinds,
 * and deliveries wherever they may wait. The version at hand goes on with it.
 *
 * `PETREL_WRITE_FIXTURE=1 npx vitest run test/scenarios/stored-data.test.ts` makes the fixture of
 * the present level; do so when a level is added, before anything stores what it adds.
 */
import { spawnSync } from "node:child_process"
import { existsSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Layer, Schema } from "effect"
import { connectTo } from "../../src/broker/connection.ts"
import { levelOf, readLayoutRecord } from "../../src/broker/installed.ts"
import { ownLevels } from "../../src/domain/feature-level.ts"
import { Facts } from "../../src/history/facts.ts"
import { run } from "../cli/in-process.ts"
import { backlogged, eventually, history, publishTo, worker } from "../kit/engine.ts"
import { startServer } from "../kit/nats-server.ts"
import { receiver } from "../kit/receiver.ts"
import { quiet } from "../kit/scenario.ts"

const fixtures = join(import.meta.dirname, "../fixtures")
const storeOf = (level: number) => join(fixtures, `level-${level}.tar.gz`)
const expectedOf = (level: number) => join(fixtures, `level-${level}.json`)

/** Events and durations last for at most 366 days, and so does a fixture. */
const maxAgeMs = 360 * 24 * 3_600_000

/** What is to happen with the data of a fixture. */
const Expected = Schema.Struct({
  /** RFC 3339 */
  madeAt: Schema.String,
  endpoints: Schema.Array(Schema.String),
  /** `<event id> <endpoint>` of each delivery that has not ended. */
  waiting: Schema.Array(Schema.String),
  /** `<event id> <endpoint>` of each dead letter that was not sent again. */
  dead: Schema.Array(Schema.String)
})
const expectedJson = Schema.fromJsonString(Expected)

const startedServer = Effect.acquireRelease(
  Effect.promise(() => startServer()),
  (server) => Effect.promise(() => server.stop())
)

/** Runs a command that has to succeed. Returns its lines. */
const petrel = Effect.fnUntraced(function* (url: string, ...args: ReadonlyArray<string>) {
  const { code, err, out } = yield* run(...args, "--nats", url)
  assert.strictEqual(code, 0, `${args.join(" ")}: ${[...out, ...err].join("\n")}`)
  return out
})

const year = "366 days"
const policy = (delay: string) =>
  JSON.stringify({
    backoff: { kind: "fixed", delay },
    ...{ jitter: "none", maxAttempts: 1000, window: year, retryAfterCap: "24 hours" }
  })

/** What each endpoint answers while the fixture is made. */
const answers: Readonly<Record<string, number>> = {
  well: 200,
  flaky: 503,
  down: 503,
  refused: 400,
  paused: 200
}
const endpoints = Object.keys(answers)

const circuit = (failures: number) =>
  JSON.stringify({
    ...{ failures, coolDown: "15 minutes", maxCoolDown: "15 minutes", giveUpAfter: year },
    rate: "none"
  })

const settings: Readonly<Record<string, ReadonlyArray<string>>> = {
  well: ["--sign", "standard-ed25519", "--header", "x-shop: 7", "--description", "all is well"],
  flaky: ["--circuit", circuit(1_000), "--retry", policy("24 hours")],
  down: ["--circuit", circuit(2), "--retry", policy("1 second"), "--metadata", "customer=42"],
  refused: ["--sign", "github", "--circuit", circuit(1_000)],
  paused: ["--sign", "stripe", "--rate", "100/s", "--retry", policy("1 second")]
}

const nameOf = (path: string) => path.split("/").at(-1) ?? ""
const deliveryOf = (id: unknown, endpoint: string) => `${String(id)} ${endpoint}`

/** What every endpoint wants, as a publisher may send it. */
const events = (first: number, count: number) =>
  Effect.forEach(
    Array.from({ length: count }, (_, index) => first + index),
    (n) =>
      publishTo(
        "acme.invoice.paid",
        n % 10 === 0 ? new Uint8Array([0, 255, n]) : JSON.stringify({ n }),
        {
          "Nats-Msg-Id": `acme.i${n}`,
          "content-type": n % 10 === 0 ? "application/octet-stream" : "application/json"
        }
      ),
    { discard: true }
  )

const onBroker = <A, E, R>(url: string, effect: Effect.Effect<A, E, R>) =>
  effect.pipe(
    Effect.scoped,
    Effect.provide(Facts.layer.pipe(Layer.provideMerge(connectTo({ url })))),
    Effect.provide(quiet)
  )

const make = Effect.gen(function* () {
  const server = yield* startedServer
  const { url } = server
  const hook = yield* receiver({
    answer: ({ path }) => ({ status: answers[nameOf(path)] ?? 500 })
  })
  const age = ["--event-age", "366d", "--history-age", "366d", "--dead-age", "366d"]
  yield* petrel(url, "init", "--partitions", "2", "--event-bytes", "64MB", ...age)
  for (const id of endpoints)
    yield* petrel(
      ...[url, "endpoint", "add", `acme/${id}`, "--url", `${hook.url}/${id}`],
      ...(settings[id] ?? [])
    )
  yield* petrel(url, "endpoint", "pause", "acme/paused")
  yield* petrel(url, "endpoint", "rotate", "acme/down")
  yield* petrel(url, "tenant", "set", "acme", "--max-endpoints", "50")
  yield* onBroker(
    url,
    Effect.gen(function* () {
      const facts = yield* history
      const { stop } = yield* worker()
      yield* events(0, 30)
      yield* facts.count("dead-lettered", 30)
      yield* facts.until(() => facts.of("delivered").length >= 30)
      yield* facts.until(
        () => facts.of("attempt-failed").filter(({ endpoint }) => endpoint === "flaky").length >= 30
      )
      yield* eventually(backlogged, (count) => count >= 55)
      yield* stop
      yield* events(30, 10)
    })
  )
  yield* Effect.promise(() => server.kill9())
  const ended = new Set(
    hook.requests
      .filter(({ path }) => nameOf(path) === "well")
      .map(({ headers, path }) => deliveryOf(headers["webhook-id"], nameOf(path)))
  )
  const ids = Array.from({ length: 40 }, (_, n) => `acme.i${n}`)
  const dead = ids.slice(0, 30).map((id) => deliveryOf(id, "refused"))
  const expected: typeof Expected.Type = {
    madeAt: new Date().toISOString(),
    endpoints: endpoints.map((id) => `acme/${id}`).toSorted(),
    waiting: ids
      .flatMap((id) => endpoints.map((endpoint) => deliveryOf(id, endpoint)))
      .filter((one) => !ended.has(one) && !dead.includes(one))
      .toSorted(),
    dead
  }
  const packed = spawnSync("tar", [
    "czf",
    storeOf(ownLevels.newest),
    ...["-C", server.storeDir, "."]
  ])
  assert.strictEqual(packed.status, 0, String(packed.stderr))
  writeFileSync(expectedOf(ownLevels.newest), `${JSON.stringify(expected, null, 2)}\n`)
})

const goOn = (level: number) =>
  Effect.gen(function* () {
    const expected = Schema.decodeUnknownSync(expectedJson)(readFileSync(expectedOf(level), "utf8"))
    const age = Date.now() - Date.parse(expected.madeAt)
    assert.isBelow(age, maxAgeMs, "its events expire: make the fixture again (see above)")
    const server = yield* startedServer
    const { url } = server
    yield* Effect.promise(() => server.kill9())
    const unpacked = spawnSync("tar", ["xzf", storeOf(level), "-C", server.storeDir])
    assert.strictEqual(unpacked.status, 0, String(unpacked.stderr))
    yield* Effect.promise(() => server.restart())

    const listed = yield* petrel(url, "endpoint", "list", "--json")
    const names = listed.map((line) => {
      const { id, tenant } = JSON.parse(line) as { readonly id: string; readonly tenant: string }
      return `${tenant}/${id}`
    })
    assert.deepStrictEqual(names.toSorted(), [...expected.endpoints])
    const hook = yield* receiver({})
    for (const name of expected.endpoints) {
      const isDefault = settings[nameOf(name)]?.includes("--retry") !== true
      // Events of the fixture that were not routed yet are older than the default window.
      const retry = isDefault ? ["--retry", policy("1 second")] : []
      const to = `${hook.url}/${nameOf(name)}`
      yield* petrel(url, "endpoint", "set", name, "--url", to, ...retry)
    }
    yield* onBroker(
      url,
      Effect.gen(function* () {
        const { record } = yield* readLayoutRecord
        assert.strictEqual(levelOf(record), level)
        const { stop } = yield* worker()
        yield* petrel(url, "endpoint", "resume", "acme/paused")
        yield* petrel(url, "endpoint", "retry-now", "acme/flaky")
        yield* petrel(url, "endpoint", "retry-now", "acme/down")
        const arrived = () =>
          hook.requests
            .map(({ headers, path }) => deliveryOf(headers["webhook-id"], nameOf(path)))
            .toSorted()
        // Compared also where some do not come: the difference says which.
        yield* Effect.timeoutOption(hook.received(expected.waiting.length), "60 seconds")
        assert.deepStrictEqual(arrived(), [...expected.waiting])
        yield* petrel(url, "dead", "redeliver", "--all")
        yield* hook.received(expected.waiting.length + expected.dead.length)
        assert.deepStrictEqual(arrived(), [...expected.waiting, ...expected.dead].toSorted())
        const audited = yield* eventually(run("audit", "--nats", url), ({ code }) => code === 0)
        assert.include(audited.out.join("\n"), "Clean")
        yield* stop
      })
    )
  })

describe("the data of a feature level", () => {
  if (process.env.PETREL_WRITE_FIXTURE === "1")
    it.live("is made by this version", () => Effect.scoped(make), 120_000)
  for (let level = ownLevels.oldest; level <= ownLevels.newest; level++)
    it.live(
      `is delivered by this version, and audited: level ${level}`,
      () => {
        assert.isTrue(existsSync(storeOf(level)), "there is no fixture: make it (see above)")
        return Effect.scoped(goOn(level))
      },
      120_000
    )
})
