import { roundKey } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { type Health, healthy } from "../../domain/health.ts"
import { present } from "../../domain/record.ts"
import {
  closed,
  isLate,
  type Outcome,
  opened,
  toHalfOpen,
  withPermanent,
  withSuccess,
  withTransient
} from "../../policy/failure-count.ts"

/*
 * The facts about an endpoint do not record until when a Retry-After holds, which delivery was the
 * latest probe of an open circuit, that an endpoint was removed or recreated, and attempts whose
 * worker died before it recorded them. The fold ignores late successes: the owner, which keeps the
 * endpoint's health, did not see them.
 */

/** The state of an endpoint according to the facts. Times in ms since the epoch. */
export interface EndpointLife {
  /** Without its generation, and when it is given up: the facts do not tell them. */
  readonly health: Health
  readonly disabled?: { readonly at: number; readonly reason?: string }
  readonly suspended?: { readonly at: number; readonly reason?: string }
  readonly paused?: { readonly at: number; readonly reason?: string }
  /**
   * Last attempts, by delivery and round. Only the end of the round tells whether the answer was
   * permanent, or time or attempts were used up.
   */
  readonly undecided: Readonly<Record<string, Fact>>
}

/** An endpoint without facts. */
export const newEndpoint: EndpointLife = { health: healthy(""), undecided: {} }

const roundOf = ({ eventAt = 0, eventSeq = 0, round = "" }: Fact): string =>
  roundKey({ eventSeq, eventAt, round })

const said = ({ at, reason }: Fact) => ({ at, ...(reason === undefined ? {} : { reason }) })

const outcomeOf = (fact: Fact, permanent: boolean): Outcome => {
  const { at, delivery = "", durationMs = 0, error, kind, status } = fact
  return {
    ...{ ok: kind === "delivered", permanent, at, delivery, sentAt: at - durationMs },
    ...present({ status, error: error?.message })
  }
}

const withHealth = (life: EndpointLife, health: Health): EndpointLife => ({ ...life, health })

const afterTransient = (life: EndpointLife, fact: Fact): EndpointLife => {
  const { health } = life
  const outcome = outcomeOf(fact, false)
  // The failure that opened the circuit is recorded after the opening, with the same time.
  const hasOpened = health.circuit.state === "open" && fact.at === health.circuit.since
  return !hasOpened && isLate(health, outcome)
    ? life
    : withHealth(life, withTransient(health, outcome))
}

const afterEnd = (life: EndpointLife, fact: Fact): EndpointLife => {
  const key = roundOf(fact)
  const { [key]: attempt, ...undecided } = life.undecided
  if (attempt === undefined) return life
  const rest = { ...life, undecided }
  return fact.reason === "permanent"
    ? withHealth(rest, withPermanent(rest.health, outcomeOf(attempt, true)))
    : afterTransient(rest, attempt)
}

/** An endpoint after a fact about it. */
export const afterEndpointFact = (life: EndpointLife, fact: Fact): EndpointLife => {
  const { health } = life
  const { at } = fact
  switch (fact.kind) {
    case "delivered":
      return withHealth(life, withSuccess(health, outcomeOf(fact, false)))
    case "attempt-failed":
      return fact.nextAttemptAt === undefined
        ? { ...life, undecided: { ...life.undecided, [roundOf(fact)]: fact } }
        : afterTransient(life, fact)
    case "dead-lettered":
      return afterEnd(life, fact)
    case "circuit-opened":
      return withHealth(life, opened(health, at, (fact.nextAttemptAt ?? at) - at, fact.reason))
    case "circuit-half-opened":
      // The history may have forgotten that it opened.
      return withHealth(
        life,
        toHalfOpen({ ...health, circuit: { ...health.circuit, state: "open" } }, at)
      )
    case "circuit-closed":
      return withHealth(life, closed(healthy(""), at, health.circuit.coolDown))
    case "endpoint-disabled":
      return { ...newEndpoint, disabled: said(fact) }
    case "endpoint-enabled":
      return newEndpoint
    case "endpoint-suspended":
      return { ...newEndpoint, suspended: said(fact), ...present({ paused: life.paused }) }
    case "endpoint-paused":
      return { ...life, paused: said(fact) }
    case "endpoint-resumed": {
      const { paused: _, suspended, ...rest } = life
      return suspended === undefined ? rest : newEndpoint
    }
    default:
      return life
  }
}

/**
 * What petrel_health should hold.
 *
 * @param giveUpAfter how long the endpoint may fail without a success, ms.
 */
export const healthFrom = (
  { health }: EndpointLife,
  generation: string,
  giveUpAfter: number
): Health => {
  const { failingSince } = health
  const giveUpAt = failingSince === undefined ? undefined : failingSince + giveUpAfter
  return { ...health, generation, ...present({ giveUpAt }) }
}

/** A field of an endpoint's health whose stored value differs from the facts. */
interface HealthDifference {
  readonly field: string
  readonly stored: unknown
  readonly folded: unknown
}

/**
 * Completes the health that was folded from facts by what only the stored one has: until when a
 * Retry-After holds, the latest probe, and whether traffic was back in full since a circuit closed.
 */
export const completed = (folded: Health, stored: Health | undefined): Health => {
  const known = stored?.generation === folded.generation ? stored : healthy(folded.generation)
  const { lastProbe } = known.circuit
  const circuit =
    folded.circuit.state === "closed" && known.circuit.state === "closed"
      ? known.circuit
      : { ...folded.circuit, ...(lastProbe === undefined ? {} : { lastProbe }) }
  const { notBefore } = known
  return { ...folded, circuit, ...(notBefore === undefined ? {} : { notBefore }) }
}

const flat = ({ circuit, ...rest }: Health): Readonly<Record<string, unknown>> => ({
  ...rest,
  ...Object.fromEntries(Object.entries(circuit).map(([name, value]) => [`circuit.${name}`, value]))
})

/** The fields in which two states of health differ. */
export const differencesOf = (stored: Health, folded: Health): ReadonlyArray<HealthDifference> => {
  const [before, after] = [flat(stored), flat(folded)]
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((field) => before[field] !== after[field])
    .map((field) => ({ field, stored: before[field], folded: after[field] }))
}
