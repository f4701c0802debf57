import { join } from "node:path"
import { assert } from "@effect/vitest"
import { Effect } from "effect"
import { startNode } from "../cli/running.ts"

const example = join(import.meta.dirname, "../../examples/receiver/main.ts")

const told = [
  "petrel  has an invoice.paid of order 42 to deliver",
  "shop    ships order 42",
  "shop    dies before the commit",
  "shop    is started again",
  "shop    ships order 42",
  "shop    dies after the commit, before the answer",
  "shop    is started again",
  "shop    petrel: duplicate invoice.paid, answered 200",
  "petrel  sends it once more, as a person asks for",
  "shop    petrel: duplicate invoice.paid, answered 200",
  "        parcels: [42]"
]

/** Some seconds, and more on a machine that others use. */
export const shopLimitMs = 180_000

/** Runs examples/receiver, and compares what it tells. */
export const runShop = (...args: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const running = yield* startNode([example, ...args])
    // What it has started ends with it, but not where it is killed.
    const code = yield* running.ended.pipe(
      Effect.timeoutOrElse({
        duration: "150 seconds",
        orElse: () => Effect.andThen(running.signal("SIGINT"), running.ended)
      })
    )
    const lines = running.out.filter((line) => told.includes(line))
    assert.deepStrictEqual([code, lines], [0, told], [...running.out, ...running.err].join("\n"))
  })
