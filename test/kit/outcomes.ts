import { assert } from "@effect/vitest"
import type { Fact } from "../../src/domain/fact.ts"
import { nth, quickRetry } from "./engine.ts"
import type { Receiver } from "./receiver.ts"

/** How early an attempt may be made, ms. */
const early = 25

/** A policy with delays far longer than any test. */
export const patientRetry = quickRetry({
  backoff: { kind: "fixed", delay: "30 minutes" },
  window: "2 hours"
})

/** Returns the facts about an endpoint. */
export const about = (facts: ReadonlyArray<Fact>, id: string) =>
  facts.filter(({ endpoint }) => endpoint === id)

/** Returns the decided delays between the end of each attempt and the next attempt, ms. */
export const waits = (facts: ReadonlyArray<Fact>) =>
  facts.flatMap(({ at, nextAttemptAt }) => (nextAttemptAt === undefined ? [] : nextAttemptAt - at))

/** Returns the kind, attempt and reason of each fact. */
export const reasons = (facts: ReadonlyArray<Fact>) =>
  facts.map(({ attempt, kind, reason }) => [kind, attempt, reason])

/** Returns the attempt numbers of the received requests. */
export const attempts = ({ requests }: Receiver) =>
  requests.map(({ headers }) => Number(headers["petrel-attempt"]))

/** Checks that no request arrived before the time that the previous failure had decided. */
export const assertNoneTooEarly = ({ requests }: Receiver, failed: ReadonlyArray<Fact>) => {
  for (const [index, { nextAttemptAt }] of failed.entries())
    if (nextAttemptAt !== undefined)
      assert.isAtLeast(nth(requests, index + 1).at, nextAttemptAt - early)
}
