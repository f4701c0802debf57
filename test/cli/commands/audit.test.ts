import { mkdtempSync, readFileSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../../src/broker/clients.ts"
import { init } from "../../../src/broker/init.ts"
import type { Fact } from "../../../src/domain/fact.ts"
import { Facts } from "../../../src/history/facts.ts"
import {
  acknowledgeEvents,
  erasableHistory,
  eventAt,
  nth,
  publishMany,
  testTopology
} from "../../kit/engine.ts"
import { installations, parse } from "../command-line.ts"
import { run } from "../in-process.ts"
import { start } from "../running.ts"

const place = installations()

const directory = Effect.acquireRelease(
  Effect.sync(() => mkdtempSync(join(tmpdir(), "petrel-audit-"))),
  (path) => Effect.sync(() => rmSync(path, { recursive: true }))
)

let written = 0
const write = (fact: Partial<Fact> & Pick<Fact, "kind">) =>
  Effect.flatMap(Facts, (facts) =>
    facts.append(
      { v: 1, at: Date.now(), tenant: "acme", endpoint: "hook", round: "0", ...fact },
      `test-${written++}`
    )
  )

const plan = {
  part: 0,
  last: true,
  endpoints: [{ id: "hook", generation: "g", revision: 1, deadline: Date.now() + 3_600_000 }],
  skipped: []
}

/** Events that were planned and delivered, as the history tells it. */
const delivered = (count: number) =>
  Effect.gen(function* () {
    yield* publishMany(count)
    for (let eventSeq = 1; eventSeq <= count; eventSeq++) {
      const about = {
        event: `invoice.paid-${eventSeq - 1}`,
        eventSeq,
        eventAt: yield* eventAt(eventSeq)
      }
      yield* write({ kind: "routed", endpoint: "_", ...about, type: "invoice.paid", plan })
      yield* write({ kind: "delivered", ...about, attempt: 1, status: 200 })
    }
    yield* acknowledgeEvents(count)
  })

const removeFact = (seq: number) =>
  Effect.gen(function* () {
    const { ask, jsm, names } = yield* natsClients
    yield* ask("remove a fact", () => jsm.streams.deleteMessage(names.history, seq, false))
  })

describe("petrel audit", () => {
  it.live("counts how everything ended, ends with 0, and fits 80 columns", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        yield* delivered(5)
        const people = yield* run("audit", ...flags)
        assert.strictEqual(people.code, 0, people.err.join("\n"))
        assert.match(people.out.join("\n"), /delivered +5\n +missing +0\n(.*\n)+\nClean: /)
        for (const line of people.out) assert.isAtMost(line.length, 80, line)

        const { code, out } = yield* run("audit", "--json", ...flags)
        assert.strictEqual(code, 0)
        assert.lengthOf(out, 1)
        const { deliveries, problems, verdict } = parse(nth(out, 0))
        assert.strictEqual(verdict, "clean")
        assert.deepStrictEqual(problems, {})
        assert.deepInclude(deliveries, { begun: 5, delivered: 5, pending: 0, missing: 0 })

        yield* publishMany(2, "invoice.late")
        const late = yield* run("audit", ...flags)
        assert.match(
          late.out.join("\n"),
          /Clean: .*\. This\s+does\s+not\s+cover the 2 events not routed yet: `petrel status` says since\s+when\.$/
        )
      })
    )
  })

  it.live("names what is missing, one line each, and ends with 1", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        yield* erasableHistory
        yield* delivered(3)
        yield* removeFact(4)
        const [people, { code, out }] = yield* Effect.all(
          [run("audit", ...flags), run("audit", "--json", ...flags)],
          { concurrency: 2 }
        )
        assert.strictEqual(people.code, 1)
        assert.deepStrictEqual(people.err, [
          "petrel: the audit found 2 problems; docs/operate/audit.md says what each means"
        ])
        for (const line of people.out) assert.isAtMost(line.length, 80, line)
        assert.strictEqual(code, 1)
        const [summary, ...problems] = out.map((line) => parse(line))
        assert.deepStrictEqual(summary?.problems, { "history-gap": 1, missing: 1 })
        assert.deepInclude(problems[0], { kind: "history-gap", seq: 4, to: 4 })
        assert.deepInclude(problems[1], {
          ...{ kind: "missing", tenant: "acme", endpoint: "hook", round: "0" },
          ...{ event: "invoice.paid-1", eventSeq: 2 }
        })
      })
    )
  })

  it.live("vouches for nothing that began before what the streams still hold", () => {
    const { flags, run: inside } = place({ historyAge: 5 * 60_000 })
    return inside(
      Effect.gen(function* () {
        yield* erasableHistory
        yield* delivered(3)
        const { ask, jsm, names } = yield* natsClients
        yield* ask("purge", () => jsm.streams.purge(names.history, { seq: 3 }))
        const all = yield* run("audit", "--json", "--since", "2020-01-01", ...flags)
        assert.strictEqual(all.code, 1)
        assert.strictEqual(parse(nth(all.out, 0)).verdict, "unvouched")
        assert.match(nth(all.err, 0), /cannot be vouched for: the streams reach back to 20/)
        // Without a beginning it is what is there that is audited. The facts that are left are about
        // none of the three events.
        const there = yield* run("audit", "--json", ...flags)
        assert.strictEqual(parse(nth(there.out, 0)).verdict, "unvouched")
        assert.match(nth(there.err, 0), /nothing can be vouched for/)
        assert.strictEqual(there.code, 1)
      })
    )
  })

  it.live("says whether the past is still what a proof says it was", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        const proof = join(yield* directory, "proof.json")
        yield* erasableHistory
        yield* delivered(4)
        yield* write({ kind: "circuit-half-opened" })
        const made = yield* run("audit", "--proof", proof, ...flags)
        assert.strictEqual(made.code, 0)
        assert.deepInclude(JSON.parse(readFileSync(proof, "utf8")), {
          v: 1,
          verdict: "clean"
        })
        yield* write({ kind: "circuit-closed" })
        const later = yield* run("audit", "--against", proof, ...flags)
        assert.strictEqual(later.code, 0)
        assert.deepStrictEqual(later.err, [
          "events: 4 are as the proof says",
          "facts: 9 are as the proof says"
        ])
        yield* removeFact(9)
        const changed = yield* run("audit", "--against", proof, ...flags)
        assert.strictEqual(changed.code, 1)
        assert.match(nth(changed.err, 2), /the past has been changed: facts 1 to 9 are not what/)
      })
    )
  })

  it.live("refuses with 2 what cannot be meant, before it looks at anything", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        const refused = (...args: ReadonlyArray<string>) =>
          Effect.map(run("audit", ...args, ...flags), ({ code, err, out }) => {
            assert.deepStrictEqual([code, out], [2, []], args.join(" "))
            return err.join("\n")
          })
        yield* delivered(2)
        const first = new Date(yield* eventAt(1)).toISOString()
        assert.strictEqual(
          yield* refused("--since", "2100-01-01"),
          "petrel: --since is in the future: there are no events yet"
        )
        assert.strictEqual(
          yield* refused("--since", "1h", "--until", "2h"),
          "petrel: --since is later than --until: nothing lies between"
        )
        assert.strictEqual(
          yield* refused("--until", "2020-01-01"),
          `petrel: --until is before the first event that is stored, which is of ${first}`
        )
        assert.strictEqual(
          yield* refused("--table", "shop.outbox"),
          "petrel: --table goes with --outbox"
        )
        assert.strictEqual(yield* refused("--every", "5s"), "petrel: --every goes with --watch")
        const nobody =
          "petrel: --tenant nobody is unknown: it has no endpoint, no event and no fact"
        assert.strictEqual(yield* refused("--tenant", "nobody"), nobody)
        assert.strictEqual(yield* refused("--watch", "--tenant", "nobody"), nobody)
        assert.strictEqual((yield* run("audit", "--tenant", "acme", ...flags)).code, 0)
        const missing = join(yield* directory, "none.json")
        assert.match(yield* refused("--against", missing), /cannot read the proof/)
        // Before anything is read: `refused` finds nothing on stdout.
        const nowhere = join(missing, "proof.json")
        assert.match(yield* refused("--proof", nowhere), /cannot write the proof: ENOENT/)
        assert.match(yield* refused("--proof", yield* directory), /proof: .* is a directory$/)
      })
    )
  })

  it.live("refuses the proof of another installation, and of other tenants", () => {
    const [one, other] = [place(), place()]
    return Effect.gen(function* () {
      const proof = join(yield* directory, "proof.json")
      const made = one.run(
        Effect.gen(function* () {
          yield* delivered(2)
          const { code } = yield* run("audit", "--proof", proof, ...one.flags)
          assert.strictEqual(code, 0)
          yield* init(testTopology)
          const again = yield* run("audit", "--against", proof, ...one.flags)
          assert.strictEqual(again.code, 0, "another init changes nothing")
          return yield* run("audit", "--tenant", "acme", "--against", proof, ...one.flags)
        })
      )
      const compared = other.run(
        Effect.andThen(delivered(2), run("audit", "--against", proof, ...other.flags))
      )
      const narrowed = yield* made
      assert.deepInclude(narrowed, {
        code: 2,
        err: ["petrel: --against is the proof of all tenants: audit the same to compare with it"]
      })
      const { code, err } = yield* compared
      assert.strictEqual(code, 2)
      assert.lengthOf(err, 1)
      const id = "[0-9a-f-]{36}"
      assert.match(
        nth(err, 0),
        new RegExp(
          `^petrel: --against is the proof of another installation: it is of ${id}, and this is ${id}$`
        )
      )
    }).pipe(Effect.scoped)
  })

  it.live("tells what somebody removed of the past from what has grown old", () => {
    const { flags, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        const { ask, jsm, names } = yield* natsClients
        const proof = join(yield* directory, "proof.json")
        yield* erasableHistory
        yield* delivered(4)
        assert.strictEqual((yield* run("audit", "--proof", proof, ...flags)).code, 0)
        yield* ask("purge", () => jsm.streams.purge(names.events, { seq: 4 }))
        yield* ask("purge", () => jsm.streams.purge(names.history, { seq: 6 }))
        const against = run("audit", "--since", "1m", "--against", proof, ...flags)
        const removed = yield* against
        assert.strictEqual(removed.code, 1)
        assert.deepStrictEqual(removed.err.slice(0, 2), [
          "events: 0 are as the proof says",
          "facts: 0 are as the proof says"
        ])
        const gone = "are gone, though neither age nor size has dropped what was there"
        assert.include(nth(removed.err, 2), `changed: events 1 to 3 ${gone}, facts 1 to 5 ${gone}`)

        // With so short an age it may have been the broker.
        yield* init({ ...testTopology, historyAge: 5 * 60_000, eventAge: 10 * 60_000 })
        const old = yield* against
        assert.deepStrictEqual(old.err.slice(0, 2), [
          "events: 0 are as the proof says; 4 are too old to be compared",
          "facts: 0 are as the proof says; 8 are too old to be compared"
        ])
        assert.notInclude(old.err.join(), "the past has been changed")
      })
    )
  })

  it.live("goes on, and raises what is missing once, as a failure that alerts are made of", () => {
    const { flags, prefix, run: inside } = place()
    return inside(
      Effect.gen(function* () {
        const { connection } = yield* natsClients
        const subject = `${prefix.toLowerCase().replace(/_$/, "")}.failures.acme.hook.missing`
        const heard: Array<string> = []
        connection.subscribe(subject, {
          callback: (_, message) => void heard.push(message.string())
        })
        yield* delivered(1)
        yield* publishMany(1, "invoice.sent")
        yield* acknowledgeEvents(1)
        const about = { event: "lost", eventSeq: 2, eventAt: yield* eventAt(2) }
        yield* write({ kind: "routed", endpoint: "_", ...about, plan })
        const watching = yield* start("audit", "--watch", "--every", "100ms", "--json", ...flags)
        yield* watching.until((out) => out.length > 0)
        assert.deepInclude(parse(nth(watching.out, 0)).missing, {
          ...{ tenant: "acme", endpoint: "hook", eventSeq: 2, round: "0" }
        })
        const again = yield* start("audit", "--watch", "--every", "100ms", ...flags)
        yield* again.until((_, err) => err.some((line) => line.includes("audited what is new")))
        yield* watching.signal("SIGTERM")
        assert.strictEqual(yield* watching.ended, 0)
        assert.deepStrictEqual(again.out, [])
        assert.lengthOf(watching.out, 1)
        assert.lengthOf(heard, 1)
      })
    )
  })
})
