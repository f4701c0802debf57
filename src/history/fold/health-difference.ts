import type { Health } from "../../domain/health.ts"
import { healthy } from "../../domain/health.ts"

/** A part of an endpoint's health that is stored otherwise than the facts tell. */
export interface Difference {
  readonly field: string
  readonly stored: unknown
  readonly told: unknown
}

/**
 * The health that the facts tell, completed by what only the stored one knows: until when a
 * Retry-After holds, the latest probe, and whether traffic was back in full since a circuit closed.
 */
export const completed = (told: Health, stored: Health | undefined): Health => {
  const known = stored?.generation === told.generation ? stored : healthy(told.generation)
  const { lastProbe } = known.circuit
  const circuit =
    told.circuit.state === "closed" && known.circuit.state === "closed"
      ? known.circuit
      : { ...told.circuit, ...(lastProbe === undefined ? {} : { lastProbe }) }
  const { notBefore } = known
  return { ...told, circuit, ...(notBefore === undefined ? {} : { notBefore }) }
}

const flat = ({ circuit, ...rest }: Health): Readonly<Record<string, unknown>> => ({
  ...rest,
  ...Object.fromEntries(Object.entries(circuit).map(([name, value]) => [`circuit.${name}`, value]))
})

/** Where two states of health differ, part by part. */
export const differencesOf = (stored: Health, told: Health): ReadonlyArray<Difference> => {
  const [before, after] = [flat(stored), flat(told)]
  return [...new Set([...Object.keys(before), ...Object.keys(after)])]
    .filter((field) => before[field] !== after[field])
    .map((field) => ({ field, stored: before[field], told: after[field] }))
}
