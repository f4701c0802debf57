import { Effect, Option, Stream } from "effect"
import { Argument, Flag } from "effect/cli"
import { DeadReason } from "../domain/outcome.ts"
import type { DeadLetter, DeadLetterQuery } from "../history/dead-letters.ts"
import { getDeadLetters, readDeadLetters } from "../history/dead-letters.ts"
import { countText, plural } from "../operations/text/number-format.ts"
import { Refused } from "./refused.ts"
import { endpointFlag, nameFlag, tenantFlag, timeFlag } from "./selection.ts"

const idExpected = "must be the number of a dead letter, as `petrel dead list` shows it"

const readId = (text: string): Option.Option<number> => {
  const id = /^\d{1,15}$/.test(text) ? Number(text) : 0
  return id > 0 ? Option.some(id) : Option.none()
}

/** The id of the dead letter that a command acts on. */
export const idArgument = Argument.String("ID").pipe(
  Argument.withDescription("Its number, as `petrel dead list` shows it"),
  Argument.filterMap(readId, () => idExpected)
)

/** All reasons except `gone`, which leaves no dead letter. */
const reasons = DeadReason.literals.filter((reason) => reason !== "gone")

/** Flags that select dead letters. */
export const filterFlags = {
  tenant: tenantFlag,
  endpoint: endpointFlag,
  reason: nameFlag("reason", reasons).pipe(
    Flag.withMetavar("REASON"),
    Flag.withDescription(`Only those that ended so: ${reasons.join(", ")}`),
    Flag.optional,
    Flag.map(Option.getOrUndefined)
  ),
  status: Flag.String("status").pipe(
    Flag.withMetavar("STATUS"),
    Flag.withDescription("Only those whose last answer was that: 503, or 5xx"),
    Flag.filterMap(
      (text) =>
        /^[1-5](\d\d|xx)$/.test(text.toLowerCase())
          ? Option.some(text.toLowerCase())
          : Option.none(),
      () => "must be an HTTP status such as 503, or a class of them such as 5xx"
    ),
    Flag.optional,
    Flag.map(Option.getOrUndefined)
  ),
  since: timeFlag("since", "From then on: 2026-03-04T10:30:00Z, or ago: 15m, '1 hour'"),
  until: timeFlag("until", "Up to then, in the same form"),
  id: Flag.String("id").pipe(
    Flag.withMetavar("ID"),
    Flag.withDescription("Only the one of this number; may be repeated"),
    Flag.filterMap(readId, () => idExpected),
    Flag.atLeast(0)
  )
}

/** A selection of dead letters. */
export interface Filter extends DeadLetterQuery {
  /** Empty: any id. */
  readonly id: ReadonlyArray<number>
}

/** The same flags for commands that change dead letters: selecting all of them needs --all. */
export const selectionFlags = {
  ...filterFlags,
  all: Flag.Boolean("all").pipe(
    Flag.withDescription("All there are"),
    Flag.withDefault(false),
    Flag.withoutNegation
  )
}

const isNarrowed = (filter: Filter): boolean => {
  const { endpoint, id, reason, since, status, tenant, until } = filter
  return (
    id.length > 0 ||
    [endpoint, reason, since, status, tenant, until].some((given) => given !== undefined)
  )
}

const missingText = (ids: ReadonlyArray<number>): string =>
  ids.length === 1
    ? `there is no dead letter ${ids[0]}: it was discarded, has become too old to be kept, or never was`
    : `there are no dead letters ${ids.slice(0, 10).join(", ")}${ids.length > 10 ? ` and ${countText(ids.length - 10)} more` : ""}: they were discarded, have become too old to be kept, or never were`

/**
 * Returns the selected dead letters, oldest first. Fails if an id does not exist.
 *
 * @param mayBeGone returns true for an id that may be missing.
 */
export const lettersOf = Effect.fnUntraced(function* (
  filter: Filter,
  mayBeGone: (id: number) => boolean = () => false
) {
  if (filter.id.length === 0) return yield* Stream.runCollect(readDeadLetters(filter))
  const { letters, missing } = yield* getDeadLetters(filter.id, filter)
  const wrong = missing.filter((id) => !mayBeGone(id))
  if (wrong.length > 0) return yield* new Refused({ message: missingText(wrong) })
  return letters
})

/** Rejects an empty selection: it must not mean all dead letters by default. */
export const checkSelection = Effect.fnUntraced(function* (
  filter: Filter & { readonly all: boolean },
  what: string
) {
  if (filter.all && isNarrowed(filter))
    return yield* new Refused({ message: "--all and flags that narrow it exclude each other" })
  if (!filter.all && !isNarrowed(filter))
    return yield* new Refused({
      message: `say which dead letters to ${what}: by --endpoint, --tenant, --reason, --status, --since, --until or --id, or --all of them; nothing was done`
    })
})

/** Returns the number of dead letters by reason, highest first. */
export const countReasons = (
  letters: ReadonlyArray<Pick<DeadLetter, "reason">>
): ReadonlyArray<readonly [reason: string, count: number]> => {
  const counts = new Map<string, number>()
  for (const { reason } of letters) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  return [...counts].sort(([, a], [, b]) => b - a)
}

export const lettersText = (count: number): string => plural(count, "dead letter")
