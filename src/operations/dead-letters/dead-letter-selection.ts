import { Effect, Schema, Stream } from "effect"
import { EndpointName } from "../../domain/endpoint.ts"
import { DeadReason } from "../../domain/outcome.ts"
import { invalid } from "../../domain/problem.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { Token } from "../../domain/token.ts"
import { TypeFilter } from "../../domain/type-filter.ts"
import type { DeadLetter } from "../../history/dead-letters.ts"
import { getDeadLetters, readDeadLetters } from "../../history/dead-letters.ts"
import { countText } from "../../text/quantities.ts"
import { DeadLettersNotFound } from "../refusals.ts"

/** All reasons except `gone`, which leaves no dead letter. */
export const deadReasons = DeadReason.literals.filter((reason) => reason !== "gone")

const statusPattern = "^[1-5](?:[0-9]{2}|xx)$"
const isStatus = new RegExp(statusPattern)

/** Returns why a text selects no statuses, or undefined. */
export const statusProblem = (status: string): string | undefined =>
  isStatus.test(status)
    ? undefined
    : "must be an HTTP status such as 503, or a class of them such as 5xx"

/** An HTTP status, or a class of them. */
export const StatusFilter = Schema.String.check(
  Schema.makeFilter(statusProblem, { toJsonSchema: () => ({ pattern: statusPattern }) })
)

/** Ids that one request may name: they are in one message with the job that they are for. */
const maxIds = 1_000

const Ids = Schema.Array(Schema.Int.check(Schema.isGreaterThanOrEqualTo(1))).check(
  Schema.makeFilter(
    ({ length }) =>
      length <= maxIds
        ? undefined
        : `must be at most ${countText(maxIds)} numbers, not ${countText(length)}`,
    { toJsonSchema: () => ({ maxItems: maxIds }) }
  )
)

/** Which dead letters are meant; all conditions hold at once. Times in ms since the epoch. */
const DeadLetterFilter = Schema.Struct({
  tenant: Schema.optional(Token).annotateKey({ description: "The name of the tenant." }),
  endpoint: Schema.optional(EndpointName).annotateKey({ description: "The id of the endpoint." }),
  reason: Schema.optional(DeadReason),
  status: Schema.optional(StatusFilter).annotateKey({
    description: "The last answer's status, or its class: `503`, `5xx`."
  }),
  type: Schema.optional(TypeFilter).annotateKey({
    description: "A filter of event types: `invoice.*`."
  }),
  since: Schema.optional(Timestamp).annotateKey({ description: "Stored then or later." }),
  until: Schema.optional(Timestamp).annotateKey({ description: "Stored then or earlier." }),
  id: Schema.optional(Ids).annotateKey({ description: "Ids. (Default: any)" })
})
type DeadLetterFilter = typeof DeadLetterFilter.Type

/** Which dead letters an operation changes. Without any condition, `all` is needed. */
export const DeadLetterSelection = Schema.Struct({
  ...DeadLetterFilter.fields,
  all: Schema.optional(Schema.Boolean)
})
export type DeadLetterSelection = typeof DeadLetterSelection.Type

const isNarrowed = ({
  endpoint,
  id = [],
  reason,
  since,
  status,
  tenant,
  type,
  until
}: DeadLetterFilter) =>
  id.length > 0 ||
  [endpoint, reason, since, status, tenant, type, until].some((given) => given !== undefined)

/** The conditions of a selection of one tenant's dead letters, by their names. */
export const conditionsOfTenant: ReadonlyArray<keyof DeadLetterFilter> = [
  "endpoint",
  "reason",
  "status",
  "since",
  "until",
  "type",
  "id"
]

const conditions: typeof conditionsOfTenant = ["tenant", ...conditionsOfTenant]

/**
 * Returns the problem of an empty selection, which must not mean all dead letters.
 *
 * @param named conditions that whoever asks may give. (Default: all)
 */
export const selectionProblem = (
  selection: DeadLetterSelection,
  what: string,
  named: ReadonlyArray<string> = conditions
) => {
  if (selection.all === true)
    return isNarrowed(selection)
      ? invalid("all", "and fields that narrow it cannot be combined")
      : undefined
  return isNarrowed(selection)
    ? undefined
    : invalid(
        "",
        `say which dead letters to ${what}: by ${named.map((name) => `\`${name}\``).join(", ")}, or \`all\` of them; nothing was done`
      )
}

/** Where a chunk of a selection begins and ends: ids. */
export interface LettersLimits {
  /** The last id of the chunk before. */
  readonly after?: number | undefined
  /** The highest id that is meant. */
  readonly upTo?: number | undefined
  /** Most dead letters that are returned. (Default: all) */
  readonly most?: number | undefined
}

/** Dead letters that are selected together. */
interface SelectedLetters<A> {
  /** Oldest first. */
  readonly letters: ReadonlyArray<A>
  /** Ids that were asked for and do not exist (any more). */
  readonly missing: ReadonlyArray<number>
  /** What the next chunk comes after; undefined after the last one. */
  readonly next: number | undefined
}

/**
 * Returns the next selected dead letters. Fails if ids were asked for and none of them exists; where
 * some do, the others were discarded or have become too old since somebody listed them.
 *
 * @param keep returns what is kept of a dead letter: there may be many.
 */
export const selectDeadLetters = Effect.fnUntraced(function* <A>(
  filter: DeadLetterFilter,
  keep: (letter: DeadLetter) => A,
  { after, most = Number.POSITIVE_INFINITY, upTo }: LettersLimits = {}
) {
  const { id = [] } = filter
  if (id.length === 0) {
    let last: number | undefined
    const letters = yield* readDeadLetters({ ...filter, after, upTo }).pipe(
      Stream.take(most),
      Stream.map((letter) => {
        last = letter.id
        return keep(letter)
      }),
      Stream.runCollect
    )
    const next = letters.length < most ? undefined : last
    return { letters, missing: [], next } satisfies SelectedLetters<A>
  }
  const left = [...new Set(id)].sort((a, b) => a - b).filter((one) => one > (after ?? 0))
  const ids = left.slice(0, most)
  const { letters, missing } = yield* getDeadLetters(ids, filter)
  if (after === undefined && missing.length === left.length)
    return yield* new DeadLettersNotFound({ ids: missing })
  const next = ids.length < left.length ? ids.at(-1) : undefined
  return { letters: letters.map(keep), missing, next } satisfies SelectedLetters<A>
})

/** Numbers of dead letters by reason, highest first. */
export const ReasonCounts = Schema.Record(Schema.String, Schema.Int)
export type ReasonCounts = typeof ReasonCounts.Type

/** Orders numbers by reason, highest first. */
export const sortReasons = (counts: Iterable<readonly [string, number]>): ReasonCounts =>
  Object.fromEntries([...counts].sort(([, a], [, b]) => b - a))

/** Counts dead letters by reason, highest first. */
export const countReasons = (letters: ReadonlyArray<Pick<DeadLetter, "reason">>): ReasonCounts => {
  const counts = new Map<string, number>()
  for (const { reason } of letters) counts.set(reason, (counts.get(reason) ?? 0) + 1)
  return sortReasons(counts)
}
