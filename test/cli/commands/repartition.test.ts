import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { natsClients } from "../../../src/broker/clients.ts"
import { readLayout } from "../../../src/broker/installed.ts"
import { partitionOf } from "../../../src/domain/names.ts"
import { endpoint, nth, publish, worker } from "../../kit/engine.ts"
import { receiver } from "../../kit/receiver.ts"
import { installations, parse } from "../command-line.ts"
import { run } from "../in-process.ts"
import { start } from "../running.ts"

const place = installations()

describe("petrel repartition", () => {
  it.live("refuses what is no number of partitions, in one sentence", () =>
    Effect.gen(function* () {
      for (const wrong of ["0", "257", "1.5"]) {
        const { code, err } = yield* run("repartition", wrong)
        assert.strictEqual(code, 2)
        assert.include(nth(err, 0), `"${wrong}" must be a whole number from 1 to 256`)
      }
    })
  )

  it.live("has nothing to do where there are so many already, though a worker runs", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        yield* worker()
        const { code, out } = yield* run("repartition", "2", ...flags)
        assert.deepStrictEqual([code, ...out], [0, "there are 2 partitions already: nothing to do"])
      })
    )
  })

  it.live("says what it would do, then does it, a line for each step", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const { url } = yield* receiver()
        // Of which the partition is another one after the change.
        const id = "billing"
        assert.notStrictEqual(partitionOf("acme", id, 2), partitionOf("acme", id, 7))
        yield* endpoint({ id, url })
        const router = yield* worker({ roles: ["router"] })
        const { ask, jsm, names } = yield* natsClients
        yield* publish("a")
        yield* Effect.repeat(
          ask("look", () => jsm.streams.info(names.deliveries(partitionOf("acme", id, 2)))),
          { until: ({ state }) => state.messages === 1 }
        )
        yield* router.stop
        const asked = yield* run("repartition", "7", "--dry-run", "--json", ...flags)
        assert.deepStrictEqual(parse(nth(asked.out, 2)), {
          event: "planned",
          from: 2,
          to: 7,
          messages: 1
        })
        assert.strictEqual((yield* readLayout).partitions, 2)
        const done = yield* run("repartition", "7", "--json", ...flags)
        assert.deepStrictEqual(
          done.out.map((line) => parse(line).event),
          ["begun", "settled", "counted", "emptied", "emptied", "done"]
        )
      })
    )
  })

  it.live("stops at Ctrl-C, and says that it goes on where it was", () => {
    const { flags, run: installed } = place()
    return installed(
      Effect.gen(function* () {
        const change = yield* start("repartition", "200", "--json", ...flags)
        yield* change.until((out) => out.some((line) => line.includes('"begun"')))
        yield* change.signal("SIGINT")
        assert.strictEqual(yield* change.ended, 130)
        assert.include(change.err.join(), "`petrel repartition 200` continues where it was")
      })
    )
  })
})
