import { Duration, Option, Schema } from "effect"
import { PositiveDuration } from "../../domain/duration.ts"
import { findPreset } from "../../policy/presets.ts"

/** How long after its event a delivery's deadline comes, by a recorded configuration, ms. */
export interface RoundWindows {
  /** For event types without a policy of their own; undefined if it is not known. */
  readonly usual: number | undefined
  readonly byFilter: ReadonlyArray<TypeWindow>
}

interface TypeWindow {
  /** The tokens of the type filter. */
  readonly filter: ReadonlyArray<string>
  readonly ms: number | undefined
}

const decodeDuration = Schema.decodeUnknownOption(PositiveDuration)

/** A preset that this version does not have is not known, and neither is what does not parse. */
const windowIn = (retry: unknown): number | undefined => {
  if (typeof retry === "string") {
    const window = findPreset(retry)?.policy.window
    return window === undefined ? undefined : Duration.toMillis(window)
  }
  if (typeof retry !== "object" || retry === null) return undefined
  const { window }: Record<string, unknown> = { ...retry }
  return Option.getOrUndefined(Option.map(decodeDuration(window), Duration.toMillis))
}

/** Most endpoints have the policy of a preset. */
const shared = new Map<string, RoundWindows>()

/** Reads the windows in a recorded configuration. */
export const roundWindows = ({
  retry,
  retryFor
}: Readonly<Record<string, unknown>>): RoundWindows => {
  if (typeof retryFor !== "object" || retryFor === null) {
    const known = typeof retry === "string" ? shared.get(retry) : undefined
    const read = known ?? { usual: windowIn(retry), byFilter: [] }
    if (typeof retry === "string" && read.usual !== undefined) shared.set(retry, read)
    return read
  }
  return {
    usual: windowIn(retry),
    byFilter: Object.entries(retryFor).map(([types, chosen]) => ({
      filter: types.split("."),
      ms: windowIn(chosen)
    }))
  }
}

const isLiteral = (token: string | undefined): boolean =>
  token !== undefined && token !== "*" && token !== ">"

/** Whether the first filter is more exact: it names the first token that only one of both names. */
const beats = (one: ReadonlyArray<string>, other: ReadonlyArray<string>): boolean => {
  for (let at = 0; at < Math.max(one.length, other.length); at++)
    if (isLiteral(one[at]) !== isLiteral(other[at])) return isLiteral(one[at])
  return false
}

/**
 * Returns how long after its event a delivery's deadline comes, ms; undefined if it is not known.
 * Does not use the engine's choice: a check must not share the code that it checks.
 *
 * @param selects whether a filter selects the event's type.
 */
export const windowOfType = (
  { byFilter, usual }: RoundWindows,
  selects: (filter: ReadonlyArray<string>) => boolean
): number | undefined => {
  let best: TypeWindow | undefined
  for (const one of byFilter)
    if (selects(one.filter) && (best === undefined || beats(one.filter, best.filter))) best = one
  return best === undefined ? usual : best.ms
}
