import { firstRound } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import type { Step } from "./round.ts"
import { stepOfKind } from "./round.ts"

/** What a fact says about one round of one delivery. */
export interface DeliveryStep {
  readonly step: Step
  readonly endpoint: string
  readonly name: { readonly eventSeq: number; readonly round: string }
  /** Give-up deadline, where the fact gives one, ms since the epoch. */
  readonly deadline: number | undefined
  readonly fact: Fact
}

/** All that a fact says about deliveries: a plan begins one for each of its endpoints. */
export const stepsOf = (fact: Fact): ReadonlyArray<DeliveryStep> => {
  const { eventSeq, plan } = fact
  const step = stepOfKind.get(fact.kind)
  if (step === undefined || eventSeq === undefined) return []
  if (fact.kind === "routed")
    return (plan?.endpoints ?? []).map(({ deadline, id }) => ({
      step,
      endpoint: id,
      name: { eventSeq, round: firstRound },
      deadline,
      fact
    }))
  const { deadline, endpoint, round = firstRound } = fact
  return [{ step, endpoint, name: { eventSeq, round }, deadline, fact }]
}
