import type { RoundIdentity } from "../../domain/delivery.ts"
import { firstRound } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { isSuccess, plannedOtherwise } from "../../domain/fact.ts"
import type { Step } from "./round.ts"
import { stepOfKind } from "./round.ts"

/** A step of one round of one delivery, from a fact. */
export interface DeliveryStep {
  readonly step: Step
  readonly endpoint: string
  readonly of: RoundIdentity
  /** The deadline, if the fact has one, ms since the epoch. */
  readonly deadline: number | undefined
  readonly fact: Fact
}

/**
 * The steps that a fact contains, in order. A plan begins a delivery for each of its endpoints, also
 * a plan that is stored with the outcome of its only delivery. A success that is marked `planned-otherwise`
 * begins its delivery too, because the plan that counts does not name the endpoint; a failure with
 * that mark belongs to no delivery.
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
