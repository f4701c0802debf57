import type { RoundIdentity } from "../../domain/delivery.ts"
import { firstRound } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { isSuccess, plannedOtherwise } from "../../domain/fact.ts"
import type { Step } from "./round.ts"
import { stepOfKind } from "./round.ts"

/** What a fact says about one round of one delivery. */
export interface DeliveryStep {
  readonly step: Step
  readonly endpoint: string
  readonly of: RoundIdentity
  /** Give-up deadline, where the fact gives one, ms since the epoch. */
  readonly deadline: number | undefined
  readonly fact: Fact
}

/**
 * All that a fact says about deliveries, in its order. A plan begins one for each of its endpoints,
 * also where it is told with the end of the only one. So does a success whose endpoint the plan that
 * counts does not name; a failure of that kind was nobody's delivery.
 */
export const stepsOf = (fact: Fact): ReadonlyArray<DeliveryStep> => {
  const { deadline, endpoint, eventAt, eventSeq, kind, plan, round = firstRound } = fact
  const step = stepOfKind.get(kind)
  if (step === undefined || eventSeq === undefined || eventAt === undefined) return []
  if (kind === "attempt-failed" && fact.reason === plannedOtherwise) return []
  const planned =
    isSuccess(kind) && fact.reason === plannedOtherwise
      ? [{ id: endpoint, deadline }]
      : (plan?.endpoints ?? [])
  const begun = planned.map(
    ({ deadline, id }): DeliveryStep => ({
      step: "begun",
      endpoint: id,
      of: { eventSeq, eventAt, round: firstRound },
      deadline,
      fact
    })
  )
  return kind === "routed"
    ? begun
    : [...begun, { step, endpoint, of: { eventSeq, eventAt, round }, deadline, fact }]
}
