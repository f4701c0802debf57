import { roundKey } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import { type Health, healthy } from "../../domain/health.ts"

/*
 * The facts about an endpoint do not record until when a Retry-After holds, which delivery was the
 * latest probe of an open circuit, that an endpoint was removed or recreated, and attempts whose
 * worker died before it recorded them. The fold ignores late successes: the owner, which keeps the
 * endpoint's health, did not see them.
 */

/** The state of an endpoint according to the facts. Times in ms since the epoch. */
export interface EndpointLife {
  readonly circuit: Health["circuit"]
  readonly failuresInRow: number
  readonly permanentInRow: number
  readonly failingSince?: number
  readonly lastStatus?: number
  readonly lastError?: string
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
export const newEndpoint: EndpointLife = {
  circuit: { state: "closed", since: 0 },
  failuresInRow: 0,
  permanentInRow: 0,
  undecided: {}
}

const roundOf = ({ eventAt = 0, eventSeq = 0, round = "" }: Fact): string =>
  roundKey({ eventSeq, eventAt, round })

const said = ({ at, reason }: Fact) => ({ at, ...(reason === undefined ? {} : { reason }) })

const lastOf = ({ error, status }: Fact): Pick<EndpointLife, "lastStatus" | "lastError"> => ({
  ...(status === undefined ? {} : { lastStatus: status }),
  ...(error === undefined ? {} : { lastError: error.message })
})

const withoutLast = (life: EndpointLife): EndpointLife => {
  const { lastError: _, lastStatus: __, ...rest } = life
  return rest
}

const withoutFailing = (life: EndpointLife): EndpointLife => {
  const { failingSince: _, ...rest } = life
  return { ...rest, failuresInRow: 0 }
}

/** Rounding error between the wall clock (whole ms) and measured durations, ms. */
const clockError = 5

/**
 * An attempt that was sent before the circuit came into its state does not count for that state. The
 * failure that opened the circuit is recorded after the opening, with the same time.
 */
const isLate = ({ circuit }: EndpointLife, { at, durationMs = 0 }: Fact): boolean =>
  circuit.state === "open" ? at !== circuit.since : at - durationMs + clockError < circuit.since

const afterSuccess = (life: EndpointLife, fact: Fact): EndpointLife => {
  if (life.circuit.state !== "closed" && isLate(life, fact)) return { ...life, permanentInRow: 0 }
  const well = { ...withoutLast(withoutFailing(life)), permanentInRow: 0 }
  const { circuit } = life
  return circuit.state === "half-open"
    ? { ...well, circuit: { ...circuit, successes: (circuit.successes ?? 0) + 1 } }
    : well
}

const afterTransient = (life: EndpointLife, fact: Fact): EndpointLife =>
  isLate(life, fact)
    ? life
    : {
        ...withoutLast(life),
        failuresInRow: life.failuresInRow + 1,
        failingSince: life.failingSince ?? fact.at,
        ...lastOf(fact)
      }

const afterPermanent = (life: EndpointLife, fact: Fact): EndpointLife => ({
  ...withoutLast(isLate(life, fact) ? life : withoutFailing(life)),
  permanentInRow: life.permanentInRow + 1,
  ...lastOf(fact)
})

const afterEnd = (life: EndpointLife, fact: Fact): EndpointLife => {
  const key = roundOf(fact)
  const { [key]: attempt, ...undecided } = life.undecided
  if (attempt === undefined) return life
  const rest = { ...life, undecided }
  return fact.reason === "permanent" ? afterPermanent(rest, attempt) : afterTransient(rest, attempt)
}

/** An endpoint after a fact about it. */
export const afterEndpointFact = (life: EndpointLife, fact: Fact): EndpointLife => {
  switch (fact.kind) {
    case "delivered":
      return afterSuccess(life, fact)
    case "attempt-failed":
      return fact.nextAttemptAt === undefined
        ? { ...life, undecided: { ...life.undecided, [roundOf(fact)]: fact } }
        : afterTransient(life, fact)
    case "dead-lettered":
      return afterEnd(life, fact)
    case "circuit-opened": {
      const { at, nextAttemptAt: until = at, reason: why } = fact
      const coolDown = until - at
      return {
        ...life,
        circuit: {
          state: "open",
          since: at,
          coolDown,
          until,
          ...(why === undefined ? {} : { why })
        }
      }
    }
    case "circuit-half-opened":
      return {
        ...life,
        circuit: { ...life.circuit, state: "half-open", since: fact.at, successes: 0 }
      }
    case "circuit-closed": {
      const { coolDown } = life.circuit
      return {
        ...withoutLast(withoutFailing(life)),
        permanentInRow: 0,
        circuit: {
          state: "closed",
          since: fact.at,
          ...(coolDown === undefined ? {} : { coolDown })
        }
      }
    }
    case "endpoint-disabled":
      return { ...newEndpoint, disabled: said(fact) }
    case "endpoint-enabled":
      return newEndpoint
    case "endpoint-suspended": {
      const { paused } = life
      return {
        ...newEndpoint,
        suspended: said(fact),
        ...(paused === undefined ? {} : { paused })
      }
    }
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
export const healthFrom = (life: EndpointLife, generation: string, giveUpAfter: number): Health => {
  const { circuit, failingSince, failuresInRow, lastError, lastStatus, permanentInRow } = life
  return {
    v: 1,
    generation,
    circuit,
    failuresInRow,
    permanentInRow,
    ...(failingSince === undefined ? {} : { failingSince, giveUpAt: failingSince + giveUpAfter }),
    ...(lastStatus === undefined ? {} : { lastStatus }),
    ...(lastError === undefined ? {} : { lastError })
  }
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
