import { assert } from "@effect/vitest"
import type { Fact } from "../src/domain/fact.ts"
import { nth, quickRetry } from "./engine.ts"
import type { Receiver } from "./receiver.ts"

/** How much before its time an attempt may be made, ms. */
const early = 25

/** Waits far longer than any test. */
export const patientRetry = quickRetry({
  backoff: { kind: "fixed", delay: "30 minutes" },
  window: "2 hours"
})

/** What is told of an endpoint. */
export const about = (facts: ReadonlyArray<Fact>, id: string) =>
  facts.filter(({ endpoint }) => endpoint === id)

/** Between the end of an attempt and the next, as decided, ms. */
export const waits = (facts: ReadonlyArray<Fact>) =>
  facts.flatMap(({ at, nextAttemptAt }) => (nextAttemptAt === undefined ? [] : nextAttemptAt - at))

/** What happened, at which attempt, and why. */
export const reasons = (facts: ReadonlyArray<Fact>) =>
  facts.map(({ attempt, kind, reason }) => [kind, attempt, reason])

/** The numbers of the attempts that came. */
export const attempts = ({ requests }: Receiver) =>
  requests.map(({ headers }) => Number(headers["petrel-attempt"]))

/** No request came before the time that was decided after the one before it. */
export const assertNoneTooEarly = ({ requests }: Receiver, failed: ReadonlyArray<Fact>) => {
  for (const [index, { nextAttemptAt }] of failed.entries())
    if (nextAttemptAt !== undefined)
      assert.isAtLeast(nth(requests, index + 1).at, nextAttemptAt - early)
}
