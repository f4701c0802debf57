import { roundKey } from "../../domain/delivery.ts"
import type { Fact } from "../../domain/fact.ts"
import type { Health } from "../../domain/health.ts"

/*
 * What the facts do not tell of an endpoint, and what a fold can therefore not know: until when a
 * Retry-After holds, which delivery was the latest probe of a circuit that is open, that an endpoint
 * was removed or made anew, and attempts whose worker died before it told of them. A late success is
 * passed over: the owner, which keeps the endpoint's health, did not see it.
 */

/** How an endpoint has fared, as far as the facts tell. Times in ms since the epoch. */
export interface EndpointLife {
  readonly circuit: Health["circuit"]
  readonly failuresInRow: number
  readonly permanentInRow: number
  readonly failingSince?: number
  readonly lastStatus?: number
  readonly lastError?: string
  readonly disabled?: { readonly at: number; readonly reason?: string }
  readonly paused?: { readonly at: number; readonly reason?: string }
  /**
   * Attempts after which nothing was tried again, by delivery and round: only the end tells whether
   * the answer was the reason, or that time or attempts were used up.
   */
  readonly undecided: Readonly<Record<string, Fact>>
}

/** An endpoint of which nothing is told. */
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

/** Clocks are read in whole ms, and how long a request took by another one, ms. */
const clockError = 5

/**
 * What was sent before the circuit came into its state says nothing about it. The failure that opened
 * it is told of after that it opened, at the same moment.
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
    case "endpoint-paused":
      return { ...life, paused: said(fact) }
    case "endpoint-resumed": {
      const { paused: _, ...rest } = life
      return rest
    }
    default:
      return life
  }
}

/**
 * What petrel_health should hold.
 *
 * @param giveUpAfter for how long the endpoint may do nothing but fail, ms.
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
