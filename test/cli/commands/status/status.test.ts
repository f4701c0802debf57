import { hostname } from "node:os"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import { vi } from "vitest"
import { Broker } from "../../../../src/broker/broker.ts"
import { natsClients } from "../../../../src/broker/clients.ts"
import { beyondRemoved } from "../../../../src/broker/losses.ts"
import { writeValue } from "../../../../src/broker/values.ts"
import { surveyUnroutable } from "../../../../src/delivery/introspection/survey-incoming.ts"
import { LastHour } from "../../../../src/operations/endpoints/endpoint-view.ts"
import {
  backlogged,
  endpoint,
  eventually,
  history,
  nth,
  publish,
  publishMany,
  publishTo,
  quickRetry,
  worker
} from "../../../kit/engine.ts"
import { gate } from "../../../kit/gate.ts"
import { receiver } from "../../../kit/receiver.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"
import { start } from "../../running.ts"

vi.setConfig({ testTimeout: 60_000 })

const place = installations()

/** Limits without which status has a notice. */
const bounded = { eventBytes: 64 * 1024 ** 2, historyBytes: 32 * 1024 ** 2 }

const anHour = quickRetry({ backoff: { kind: "fixed", delay: "1 hour" }, window: "2 hours" })

const Codes = Schema.Array(Schema.Struct({ code: Schema.String, text: Schema.String }))
const codes = (news: unknown) => Schema.decodeUnknownSync(Codes)(news).map(({ code }) => code)

describe.concurrent("petrel status", () => {
  it.live("says where deliveries wait, and how the attempts of the last hour went", () => {
    const { flags, run: installed } = place(bounded)
    return installed(
      Effect.gen(function* () {
        const quick = yield* receiver()
        const slow = yield* gate
        const failing = yield* receiver({ answer: { status: 503 } })
        yield* endpoint({ id: "quick", url: quick.url, types: ["quick"] })
        yield* endpoint({ id: "slow", url: slow.url, types: ["slow"], maxInFlight: 2 })
        yield* endpoint({ id: "failing", url: failing.url, types: ["failing"], retry: anHour })
        const before = Date.now()
        yield* worker()
        const facts = yield* history
        yield* publishMany(6, "quick")
        yield* publishMany(3, "failing")
        yield* facts.count("delivered", 6)
        yield* facts.count("attempt-failed", 3)
        yield* publishMany(40, "slow")
        yield* slow.received(2)

        yield* eventually(backlogged, (count) => count === 38)
        const { out } = yield* run("status", "--json", ...flags)
        const seen = parse(nth(out, 0))
        assert.deepStrictEqual(seen.deliveries, {
          waiting: 41,
          new: 0,
          ackPending: 3,
          inFlight: 2,
          inLine: 0,
          retries: 3,
          scheduled: 0,
          backlog: 38,
          unreadable: 0,
          partitionsAnswering: 2
        })
        const { p50Ms, p95Ms, since, ...hour } = Schema.decodeUnknownSync(
          Schema.toCodecJson(LastHour)
        )(seen.lastHour)
        assert.deepStrictEqual(hour, { attempts: 9, delivered: 6, successRate: 0.6667 })
        assert.isAtLeast(p95Ms ?? 0, p50Ms ?? 1)
        assert.isAtLeast(since, before)
        assert.deepInclude(seen.events, { stored: 49, waitingForRouter: 0, inRouter: 2, lost: 0 })
        assert.deepInclude(seen.endpoints, { total: 3, closed: 3, open: 0, withBacklog: 1 })
        assert.deepInclude(seen.oldestWaiting, { endpoint: "failing", place: "queue" })
        assert.deepInclude(nth(Array.isArray(seen.workers) ? seen.workers : [], 0), {
          worker: "w1",
          host: hostname(),
          partitions: [0, 1]
        })
        assert.deepStrictEqual([seen.problems, seen.notices], [[], []])

        const [text, shown, listed, showed] = yield* Effect.all(
          [
            run("status", "--check", ...flags),
            run("endpoint", "show", "acme/slow", "--json", ...flags),
            run("endpoint", "list", "--json", ...flags),
            run("endpoint", "show", "acme/failing", ...flags)
          ],
          { concurrency: 2 }
        )
        assert.strictEqual(text.code, 0)
        assert.include(text.out, "all is well")
        assert.isBelow(text.out.length, 24)
        assert.match(
          text.out.join("\n"),
          /^deliveries +41 wait: 0 new, 3 for a retry, .* 38 in 1 backlog; 2 in flight, 0 in line$/m
        )
        assert.deepInclude(parse(nth(shown.out, 0)), {
          owner: "w1",
          inFlight: 2,
          waiting: { memory: 0, queue: 0, schedules: 0, backlog: 38 }
        })
        const [failed, prompt] = listed.out.map((line) => parse(line))
        assert.deepInclude(failed, { waiting: { memory: 0, queue: 3, schedules: 0, backlog: 0 } })
        assert.deepInclude(failed?.lastHour, { attempts: 3, delivered: 0, successRate: 0 })
        assert.deepInclude(prompt?.lastHour, { attempts: 6, delivered: 6, successRate: 1 })
        assert.match(
          showed.out.join("\n"),
          /last hour +3 attempts since .*: 0% delivered, p50 .* ms/
        )
        yield* slow.open
      })
    )
  })

  it.live("says that no worker is there, and what only a worker knows is null", () => {
    const { flags, run: installed } = place(bounded)
    return installed(
      Effect.gen(function* () {
        yield* endpoint()
        yield* publish("a")
        const [checked, json, shown, shownText] = yield* Effect.all(
          [
            run("status", "--check", ...flags),
            run("status", "--json", ...flags),
            run("endpoint", "show", "acme/hook", "--json", ...flags),
            run("endpoint", "show", "acme/hook", ...flags)
          ],
          { concurrency: 2 }
        )
        const reason =
          "no worker is running, so nothing is delivered: start one with `petrel worker`"
        assert.deepStrictEqual(checked.err, [`petrel: ${reason}`])
        assert.strictEqual(checked.code, 1)
        assert.strictEqual(checked.out.at(-1), `problem     ${reason}`)
        assert.strictEqual(json.code, 0)
        const seen = parse(nth(json.out, 0))
        assert.deepStrictEqual(seen.problems, [{ code: "no-worker", text: reason }])
        assert.deepInclude(seen.events, { stored: 1, waitingForRouter: 1, inRouter: 0, lost: 0 })
        assert.deepInclude(seen.deliveries, { inFlight: null, retries: null })
        assert.deepInclude(seen, { lastHour: null, oldestWaiting: null })
        assert.deepInclude(parse(nth(shown.out, 0)), {
          owner: null,
          inFlight: null,
          waiting: { memory: null, queue: 0, schedules: 0, backlog: 0 },
          lastHour: null
        })
        assert.match(
          shownText.out.join("\n"),
          /in flight +not known: no worker owns partition \d now/
        )
      })
    )
  })

  it.live("tells a partition that nobody owns from one whose owner says nothing", () => {
    const { flags, run: installed } = place(bounded)
    return installed(
      Effect.gen(function* () {
        const { names } = yield* Broker
        const write = (key: string, value: object) =>
          writeValue(names.buckets.workers, key, JSON.stringify(value))
        const gone = { id: "gone", instance: "x", host: "h", pid: 1, partitions: [] }
        const roles = ["router", "deliver"]
        yield* write("worker.gone", { v: 1, ...gone, roles, startedAt: Date.now() - 60_000 })
        yield* write("owner.0", { worker: "gone", instance: "x" })
        const { code, err, out } = yield* run("status", "--json", "--check", ...flags)
        assert.strictEqual(code, 1)
        assert.match(
          nth(err, 0),
          /^petrel: partition 1 has no owner, so nothing there is delivered/
        )
        const { notices, partitions, problems } = parse(nth(out, 0))
        assert.deepStrictEqual(codes(problems), ["partition-without-owner"])
        assert.deepStrictEqual(codes(notices), ["owner-silent"])
        const [first, second] = Array.isArray(partitions) ? partitions : []
        assert.deepInclude(first, { owner: "gone", answers: false })
        assert.deepInclude(second, { owner: null, unownedSince: null })
      })
    )
  })

  it.live("says that a stream is missing", () => {
    const { flags, run: installed } = place(bounded)
    return installed(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* worker()
        yield* ask("remove", () => jsm.streams.delete(names.dead))
        const { code, err } = yield* run("status", "--check", ...flags)
        assert.deepStrictEqual(err, [
          `petrel: ${names.dead} is missing: run \`petrel init\`, which makes it again and says what may be lost with it, then restart the workers`
        ])
        assert.strictEqual(code, 1)
      })
    )
  })

  it.live("says that events go to nobody, and no longer once that was an hour ago", () => {
    const { flags, run: installed } = place(bounded)
    return installed(
      Effect.gen(function* () {
        const facts = yield* history
        yield* worker()
        yield* publishTo("acme")
        yield* publishTo("acme.*")
        yield* publishTo("acme.fine")
        yield* facts.count("unroutable", 2)
        const { code, out } = yield* run("status", "--check", ...flags)
        assert.strictEqual(code, 0)
        assert.match(
          out.join("\n"),
          /2 events of the last hour go to no endpoint, the last at .* \(the type's token "\*".*\), though/
        )
        const [later, now] = yield* Effect.all(
          [surveyUnroutable(Date.now() + 1_000), surveyUnroutable(0)],
          { concurrency: 2 }
        )
        assert.isUndefined(later)
        assert.deepInclude(now, { count: 2 })
      })
    )
  })

  it.live("says that a backlog was made again at sequences that places cannot hold", () => {
    const { flags, run: installed } = place(bounded)
    return installed(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        yield* worker()
        const backlog = names.backlog(1)
        const { config } = yield* ask("look", () => jsm.streams.info(backlog))
        const made = (first_seq: number) =>
          ask("make again", async () => {
            await jsm.streams.delete(backlog)
            await jsm.streams.add({ ...config, first_seq })
          })
        yield* made(beyondRemoved(Date.now(), true))
        const well = parse(nth((yield* run("status", "--json", ...flags)).out, 0))
        assert.deepStrictEqual(codes(well.problems), [])
        yield* made(beyondRemoved(Date.now()))
        const ill = parse(nth((yield* run("status", "--json", ...flags)).out, 0))
        assert.deepStrictEqual(codes(ill.problems), ["backlog-inexact"])
      })
    )
  })

  it.live("shows it again and again until it is stopped", () => {
    const { flags, run: installed } = place(bounded)
    return installed(
      Effect.gen(function* () {
        const watching = yield* start("status", "--watch", "--json", ...flags)
        yield* watching.until((out) => out.length >= 2)
        yield* watching.signal("SIGTERM")
        assert.strictEqual(yield* watching.ended, 0)
        const [first, second] = watching.out.map((line) => Date.parse(String(parse(line).at)))
        assert.approximately((second ?? 0) - (first ?? 0), 2_000, 1_500)
        const both = yield* run("status", "--watch", "--check", ...flags)
        assert.deepStrictEqual(both.err, ["petrel: --check looks once: leave out --watch"])
      })
    )
  })

  it.live("fails where there is no installation, and where nobody answers", () => {
    const { flags } = place()
    return Effect.gen(function* () {
      const none = yield* run("status", ...flags)
      assert.match(nth(none.err, 0), /there is no installation named .*: run `petrel init` first/)
      const nobody = yield* run("status", "--nats", "nats://127.0.0.1:9")
      assert.match(nth(nobody.err, 0), /no NATS server answers at nats:\/\/127\.0\.0\.1:9/)
      assert.deepStrictEqual([none.code, nobody.code], [1, 1])
    })
  })
})
