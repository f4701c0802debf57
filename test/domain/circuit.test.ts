import { assert, describe, it } from "@effect/vitest"
import { Schema } from "effect"
import { Circuit, circuitSettings } from "../../src/domain/circuit.ts"
import { circuitOf } from "../../src/domain/endpoint.ts"

const settingsOf = (json: typeof Circuit.Encoded) =>
  circuitOf({ circuit: Schema.decodeSync(Circuit)(json) })

const minute = 60_000

describe("the settings of a circuit", () => {
  it("are the defaults where an endpoint says nothing", () => {
    const defaults = {
      failures: 5,
      rate: { percent: 50, of: 20, over: minute },
      coolDown: 30_000,
      maxCoolDown: 15 * minute,
      successes: 2,
      onOpen: "backlog" as const,
      giveUpAfter: 5 * 24 * 60 * minute,
      permanentFailures: 100,
      onGiveUp: "disable" as const,
      onGone: "disable" as const
    }
    assert.deepStrictEqual(circuitOf({}), defaults)
    assert.deepStrictEqual(settingsOf({}), defaults)
  })

  it("are what an endpoint says, and the defaults for the rest", () => {
    const { failures, giveUpAfter, onGiveUp, onGone, onOpen, rate, successes } = settingsOf({
      failures: 3,
      onGiveUp: "suspend",
      onOpen: "dead-letter",
      giveUpAfter: "1 day",
      rate: { percent: 20, of: 10, over: "5 minutes" }
    })
    assert.deepStrictEqual(
      { failures, giveUpAfter, onGiveUp, onGone, onOpen, rate, successes },
      {
        failures: 3,
        giveUpAfter: 24 * 60 * minute,
        onGiveUp: "suspend",
        onGone: "disable",
        onOpen: "dead-letter",
        rate: { percent: 20, of: 10, over: 5 * minute },
        successes: 2
      }
    )
  })

  it("have no failure rate where there is to be none", () => {
    assert.notProperty(settingsOf({ rate: "none" }), "rate")
  })

  it("never have a first cool-down longer than the longest, whichever is given", () => {
    const { coolDown, maxCoolDown } = settingsOf({ coolDown: "1 hour" })
    assert.deepStrictEqual([coolDown, maxCoolDown], [60 * minute, 60 * minute])
    const short = settingsOf({ maxCoolDown: "10 seconds" })
    assert.deepStrictEqual([short.coolDown, short.maxCoolDown], [10_000, 10_000])
  })

  it("are those of a circuit without an endpoint, too", () => {
    assert.deepStrictEqual(circuitSettings(), circuitOf({}))
  })
})
