import { afterAll, assert, beforeAll, describe, it } from "vitest"
import type { Step } from "../../src/receiver/settings.ts"
import { type PostgresServer, startPostgres, withoutPostgres } from "../kit/postgres-server.ts"
import { tellCrashStory } from "./crash/story.ts"

/** `tsc` says which one is missing. */
const steps = Object.keys({
  received: true,
  verified: true,
  "working-once": true,
  "worked-once": true,
  stored: true,
  claimed: true,
  working: true,
  worked: true,
  committed: true,
  failed: true
} satisfies Record<Step, true>)

const nothingWrong = { lost: 0, missing: 0, doubled: 0, outOfOrder: 0, dead: 0 }

describe.skipIf(withoutPostgres !== undefined)("A receiver that is killed", () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server.stop())

  it.each(steps)("at %s has lost, doubled and disordered nothing", async (step) => {
    const result = await tellCrashStory(server, `at_${step.replace("-", "_")}`, {
      ...{ events: 60, senders: 2, receivers: 2, kills: 0, databaseKills: 0, repeats: 0.3 },
      killAt: step
    })
    assert.deepInclude(result, nothingWrong)
    assert.isAtLeast(result.selfKills, 1)
  })

  it("at random, with its database, has lost, doubled and disordered nothing", async () => {
    const result = await tellCrashStory(server, "at_random", {
      ...{ events: 1_000, senders: 4, receivers: 3, kills: 6, databaseKills: 1, repeats: 0.3 }
    })
    assert.deepInclude(result, { ...nothingWrong, kills: 6, databaseKills: 1 })
    assert.isAbove(result.unanswered + result.refused, 0)
  })
})
