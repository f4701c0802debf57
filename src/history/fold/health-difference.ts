import type { Health } from "../../domain/health.ts"
import { healthy } from "../../domain/health.ts"

/** A field of an endpoint's health whose stored value differs from the facts. */
export interface HealthDifference {
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
