import { assert, describe, it } from "@effect/vitest"
import { Effect, Stream } from "effect"
import { Broker } from "../../../../src/broker/broker.ts"
import { scanQueue } from "../../../../src/broker/scan.ts"
import { partitionOf } from "../../../../src/domain/names.ts"
import { disableEndpoint, pauseEndpoint } from "../../../../src/endpoints/endpoint-state.ts"
import { getEndpoint } from "../../../../src/endpoints/endpoint-store.ts"
import { allFacts } from "../../../kit/consistency.ts"
import { deadLetters, endpoint, nth, worker } from "../../../kit/engine.ts"
import { sendsAllOnce } from "../../broken-off.ts"
import { installations, parse } from "../../command-line.ts"
import { run } from "../../in-process.ts"
import { bury } from "./dead-letters.ts"

const install = installations()

/** Messages that wait in the queue of acme's endpoint. */
const waiting = (id: string) =>
  Effect.gen(function* () {
    const { names } = yield* Broker
    const partition = partitionOf("acme", id, 2)
    const subject = names.subjects.delivery(partition, "acme", id)
    return yield* Stream.runCollect(scanQueue(names.deliveries(partition), subject))
  })

describe("petrel dead redeliver", () => {
  it.live("says what waits because its endpoint is paused", () => {
    const place = install()
    return place.run(
      Effect.gen(function* () {
        yield* endpoint()
        yield* endpoint({ id: "held" })
        yield* pauseEndpoint({ tenant: "acme", endpoint: "held" }, undefined, "ana")
        for (const [index, id] of ["hook", "held", "held"].entries())
          yield* bury({
            endpoint: id,
            event: `acme-${index}`,
            eventSeq: index + 1,
            reason: "permanent"
          })
        const waits =
          "2 of them wait: acme/held is paused or suspended, until `petrel endpoint resume acme/held`"
        const planned = yield* run("dead", "redeliver", ...place.flags, "--all", "--dry-run")
        assert.deepStrictEqual(planned.out, [
          "would send 3 dead letters again",
          "  permanent                   3",
          waits
        ])
        const { out } = yield* run("dead", "redeliver", ...place.flags, "--all")
        assert.deepStrictEqual(out, [
          "3 dead letters sent again: `petrel dead list` shows what becomes of them",
          waits
        ])
      })
    )
  })

  it.live("says what is wrong in one sentence, and does nothing then", () => {
    const place = install()
    const redeliver = (...args: ReadonlyArray<string>) =>
      Effect.map(run("dead", "redeliver", ...place.flags, ...args), ({ code, err, out }) => ({
        code,
        said: [...out, ...err].join("\n")
      }))
    return place.run(
      Effect.gen(function* () {
        yield* endpoint()
        yield* bury({ endpoint: "hook", event: "acme-1", reason: "permanent" })
        const answers = yield* Effect.all(
          [
            redeliver(),
            redeliver("--all", "--reason", "permanent"),
            redeliver("--id", "7"),
            redeliver("--id", "x"),
            redeliver("--status", "999"),
            redeliver("--all", "--by", "")
          ],
          { concurrency: 3 }
        )
        for (const [index, pattern] of [
          /say which dead letters to send again: .*nothing was done$/,
          /--all and flags that narrow it cannot be combined$/,
          /there is no dead letter 7: /,
          /--id "x" must be the number of a dead letter/,
          /--status "999" must be an HTTP status/,
          /--by needs a value/
        ].entries()) {
          assert.strictEqual(nth(answers, index).code, index === 2 ? 1 : 2)
          assert.match(nth(answers, index).said, pattern)
        }
        assert.deepStrictEqual(
          (yield* allFacts).map(({ kind }) => kind),
          ["endpoint-changed"]
        )
        assert.deepStrictEqual(yield* waiting("hook"), [])
      })
    )
  })

  it.live(
    "counts by reason before, sends once, and leaves alone what its endpoint would not take",
    () => {
      const place = install()
      const redeliver = (...args: ReadonlyArray<string>) =>
        run("dead", "redeliver", ...place.flags, ...args)
      return place.run(
        Effect.gen(function* () {
          yield* endpoint()
          yield* endpoint({ id: "off" })
          yield* disableEndpoint({ tenant: "acme", endpoint: "off" }, "by hand", "cli")
          for (const [index, reason] of ["permanent", "attempts", "permanent"].entries())
            yield* bury({ endpoint: "hook", event: `acme-${index}`, eventSeq: index + 1, reason })
          yield* bury({ endpoint: "off", event: "acme-off", reason: "permanent" })
          yield* bury({ endpoint: "gone", event: "acme-gone", reason: "permanent" })

          const planned = yield* redeliver("--all", "--dry-run")
          assert.deepStrictEqual(planned.out, [
            "would send 3 dead letters again",
            "  permanent                   2",
            "  attempts                    1",
            "1 left alone: acme/off is disabled: put it back to work with `petrel endpoint enable`",
            "1 left alone: acme/gone is removed"
          ])
          assert.deepStrictEqual(yield* waiting("hook"), [])

          const sent = yield* redeliver("--all", "--by", "ana", "--json")
          const left = [
            { endpoint: "acme/off", why: "endpoint-disabled", count: 1 },
            { endpoint: "acme/gone", why: "endpoint-removed", count: 1 }
          ]
          assert.deepStrictEqual(parse(nth(sent.out, 0)), {
            event: "done",
            selected: 5,
            redelivered: 3,
            gone: 0,
            before: 0,
            deliveredLate: 0,
            superseded: 0,
            skipped: left,
            skippedElsewhere: 0
          })
          const { revision } = yield* getEndpoint("acme", "hook")
          const messages = yield* waiting("hook")
          assert.deepStrictEqual(
            messages.map(({ header }) => [
              header.get("petrel-event"),
              header.get("petrel-round"),
              header.get("petrel-revision"),
              header.get("petrel-progress")
            ]),
            [
              ["acme-0", "d1", String(revision), ""],
              ["acme-1", "d2", String(revision), ""],
              ["acme-2", "d3", String(revision), ""]
            ]
          )
          assert.deepStrictEqual(
            (yield* allFacts)
              .filter(({ kind }) => kind === "redelivered")
              .map(({ by, dead }) => [dead, by]),
            [
              [1, "ana"],
              [2, "ana"],
              [3, "ana"]
            ]
          )
          const again = yield* redeliver("--endpoint", "acme/hook")
          assert.deepStrictEqual(again, {
            code: 0,
            out: ["nothing was sent", "3 left alone: sent again before"],
            err: []
          })
          const off = yield* redeliver("--endpoint", "acme/off")
          assert.strictEqual(off.code, 1)
          assert.match(off.err.join("\n"), /nothing was sent: acme\/off takes nothing/)
          assert.lengthOf(yield* waiting("hook"), 3)
        })
      )
    }
  )

  it.live("leaves out ids that do not exist any more, and sends the others", () => {
    const place = install()
    const redeliver = (...ids: ReadonlyArray<string>) =>
      run("dead", "redeliver", ...ids.flatMap((id) => ["--id", id]), ...place.flags)
    return place.run(
      Effect.gen(function* () {
        yield* endpoint()
        for (const n of [1, 2, 3])
          yield* bury({ endpoint: "hook", event: `acme-${n}`, eventSeq: n, reason: "permanent" })
        yield* run("dead", "discard", "--id", "2", "--yes", ...place.flags)
        const sent = yield* redeliver("1", "2", "3")
        assert.deepStrictEqual([sent.code, sent.err], [0, []])
        assert.match(nth(sent.out, 0), /^2 dead letters sent again: /)
        assert.strictEqual(nth(sent.out, 1), "1 left out: discarded, or too old and no longer kept")
        assert.lengthOf(yield* waiting("hook"), 2)
        const none = yield* redeliver("2", "9")
        assert.strictEqual(none.code, 1)
        assert.match(none.err.join("\n"), /there are no dead letters 2, 9: /)
        const again = yield* run(
          "dead",
          "discard",
          "--id",
          "2",
          "--id",
          "3",
          "--yes",
          ...place.flags
        )
        assert.deepStrictEqual(again.out, [
          "nothing was discarded",
          "1 left alone: sent again, and still on the way",
          "1 not there: discarded, or too old and no longer kept"
        ])
      })
    )
  })

  sendsAllOnce({
    install,
    kind: "redelivered",
    endpoint: { id: "hook" },
    command: ["dead", "redeliver", "--all"],
    prepare: (count) =>
      Effect.andThen(
        worker(),
        Effect.forEach(
          Array.from({ length: count }, (_, n) => n),
          (n) =>
            bury({
              endpoint: "hook",
              event: `acme-${n}`,
              eventSeq: n + 1,
              reason: "attempts",
              body: `body ${n}`
            }),
          { concurrency: 32, discard: true }
        )
      ),
    nth: (n) => `acme-${n} body ${n}`,
    said: /: run the same command with --until \d{4}-.*Z to send the rest/
  })
})

describe("petrel dead discard", () => {
  it.live("tells the history who did it, then removes them, where that was agreed to", () => {
    const place = install()
    const discard = (...args: ReadonlyArray<string>) =>
      run("dead", "discard", ...place.flags, ...args)
    return place.run(
      Effect.gen(function* () {
        yield* endpoint()
        for (const n of [1, 2, 3])
          yield* bury({ endpoint: "hook", event: `acme-${n}`, eventSeq: n, reason: "permanent" })
        yield* run("dead", "redeliver", "--id", "2", ...place.flags)

        const unasked = yield* discard("--all")
        assert.strictEqual(unasked.code, 1)
        assert.match(unasked.err.join("\n"), /add --yes to discard them without a question/)
        assert.lengthOf(yield* deadLetters, 3)

        const done = yield* discard("--all", "--yes", "--by", "ana")
        assert.deepStrictEqual(done.out, [
          "2 dead letters discarded",
          "1 left alone: sent again, and still on the way"
        ])
        assert.deepStrictEqual(
          (yield* deadLetters).map(({ seq }) => seq),
          [2]
        )
        assert.deepStrictEqual(
          (yield* allFacts)
            .filter(({ kind }) => kind === "discarded")
            .map(({ by, dead, eventSeq, round }) => [dead, eventSeq, round, by]),
          [
            [1, 1, "0", "ana"],
            [3, 3, "0", "ana"]
          ]
        )
        const gone = yield* run("dead", "redeliver", "--id", "1", ...place.flags)
        assert.match(gone.err.join("\n"), /there is no dead letter 1: it was discarded/)
      })
    )
  })
})
