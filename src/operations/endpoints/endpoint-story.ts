import { Effect, Schema, SchemaGetter, Struct } from "effect"
import { Configuration, differencesOf, SettingDifference } from "../../domain/configuration.ts"
import { EndpointName, Paused, Stopped } from "../../domain/endpoint.ts"
import { present } from "../../domain/record.ts"
import { Timestamp } from "../../domain/timestamp.ts"
import { getEndpoint } from "../../endpoints/endpoint-store.ts"
import { type ConfigurationStep, readStory } from "../../history/configuration.ts"
import { readingHistory } from "../history/history-readings.ts"
import { operation } from "../operation.ts"
import {
  defaultLimit,
  EndpointId,
  makeCursor,
  next,
  pageQuery,
  Tenant,
  tenantPath
} from "../parameters.ts"

const stateCodecs: Readonly<Record<string, Schema.Codec<unknown, unknown>>> = {
  secrets: Schema.toCodecJson(Configuration.fields.secrets),
  disabled: Schema.toCodecJson(Stopped),
  suspended: Schema.toCodecJson(Stopped),
  paused: Schema.toCodecJson(Paused)
}

/** Writes the times in the values of a difference as texts. */
const withTimeTexts = ({ setting, ...values }: SettingDifference): SettingDifference => {
  const codec = stateCodecs[setting]
  if (codec === undefined) return { setting, ...values }
  const encode = Schema.encodeUnknownSync(codec)
  return {
    setting,
    ...Object.fromEntries(Object.entries(values).map(([end, value]) => [end, encode(value)]))
  }
}

/** A difference. Its values are as they are stored; in JSON their times are texts. */
const AnsweredDifference = Schema.declare(Schema.is(SettingDifference), {
  expected: "a setting that differs",
  toCodecJson: () =>
    Schema.link<SettingDifference>()(SettingDifference, {
      decode: SchemaGetter.passthrough(),
      encode: SchemaGetter.transform(withTimeTexts)
    })
})

/** A recorded change of an endpoint. */
export const EndpointStep = Schema.Struct({
  ...EndpointName.fields,
  revision: Schema.Int.annotateKey({ description: "The revision in the endpoints bucket." }),
  /** ms since the epoch. */
  at: Timestamp.annotateKey({ description: "When the bucket stored it." }),
  by: Schema.optionalKey(Schema.String).annotateKey({ description: "Its author, if known." }),
  user: Schema.optionalKey(Schema.String).annotateKey({
    description: "The broker's user that recorded it, if known."
  }),
  change: Schema.Literals(["added", "changed", "removed", "unreadable"]).annotateKey({
    description: "What happened."
  }),
  differences: Schema.Array(AnsweredDifference).annotateKey({
    description: "The settings that differ."
  }),
  configuration: Schema.optionalKey(Schema.toEncoded(Configuration)).annotateKey({
    description:
      "The configuration after the change. Absent if the endpoint was removed or is unreadable."
  })
})
export type EndpointStep = typeof EndpointStep.Type

/** Which revisions are compared. (Default: the last two) */
const Revisions = Schema.Struct({
  from: Schema.optional(Schema.Int),
  to: Schema.optional(Schema.Int)
})
type Revisions = typeof Revisions.Type

/** How two revisions of an endpoint's configuration differ. */
export const Comparison = Schema.Struct({
  ...EndpointName.fields,
  from: Schema.optionalKey(Schema.Int),
  to: Schema.optionalKey(Schema.Int),
  differences: Schema.Array(AnsweredDifference).annotateKey({
    description: "The settings that differ."
  }),
  problem: Schema.optionalKey(Schema.String).annotateKey({
    description: "Why the revisions cannot be compared."
  })
})
export type Comparison = typeof Comparison.Type

/**
 * Returns all recorded changes of an endpoint, oldest first, also of a removed one. Empty for an
 * endpoint whose changes were not recorded yet; fails with EndpointNotFound if there is none.
 */
export const endpointHistory = Effect.fnUntraced(function* ({ id, tenant }: EndpointName) {
  const story = yield* readStory(tenant, id)
  if (story.length === 0) yield* getEndpoint(tenant, id)
  return story.map((step): EndpointStep => ({ tenant, id, ...step }))
})

/** Changes of an endpoint that can be paged through: the latest. Each may take 64 KiB of memory. */
const maxPaged = 500

/** Where a page of changes begins: behind the one of this time and revision. */
const StepPosition = Schema.Struct({
  at: Schema.Finite.annotateKey({ description: "When the bucket stored it." }),
  revision: Schema.Int
})
type StepPosition = typeof StepPosition.Type

/** A change of an endpoint, as its tenant sees it: what differs, and not all that is set. */
const PagedStep = Schema.Struct(Struct.omit(EndpointStep.fields, ["user", "configuration"]))
type PagedStep = typeof PagedStep.Type

/**
 * Returns a page of the latest 500 changes of an endpoint, newest first, also of a removed one. Fails
 * with EndpointNotFound if there is none.
 */
const pageHistory = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  after: StepPosition | undefined,
  limit: number
) {
  const story = yield* readStory(tenant, id, maxPaged)
  if (story.length === 0) yield* getEndpoint(tenant, id)
  const newest = story.toReversed()
  const left =
    after === undefined
      ? newest
      : newest.filter(
          ({ at, revision }) => at < after.at || (at === after.at && revision < after.revision)
        )
  const page = left.slice(0, limit)
  const last = left.length > limit ? page.at(-1) : undefined
  return {
    changes: page.map(
      ({ configuration: _, user: __, ...step }): PagedStep => ({ tenant, id, ...step })
    ),
    next: last === undefined ? undefined : { at: last.at, revision: last.revision }
  }
})

type Story = ReadonlyArray<ConfigurationStep>

/** Returns the last step with a revision: a truncated bucket assigns its revisions again. */
const stepOf = (story: Story, revision: number): ConfigurationStep | undefined =>
  story.findLast((step) => step.revision === revision)

const unknownText = (story: Story, unknown: number): string => {
  const all = story.map(({ revision }) => revision)
  const nearest = [
    Math.max(...all.filter((revision) => revision < unknown)),
    Math.min(...all.filter((revision) => revision > unknown))
  ].filter(Number.isFinite)
  const [only] = nearest
  return `it has no revision ${unknown}: the nearest ${
    nearest.length === 1 ? `is ${only}` : `are ${nearest.join(" and ")}`
  }`
}

/** Compares two revisions of a story. */
const compare = (
  story: Story,
  asked: Revisions
): Omit<Comparison, keyof typeof EndpointName.fields> => {
  const { from = story.at(-2)?.revision, to = story.at(-1)?.revision } = asked
  const refused = (problem: string) => ({
    ...present({ from, to }),
    differences: [],
    problem
  })
  if (to === undefined || story.length === 0) return refused("the history has no change of it")
  if (from === undefined) return refused(`it has had no change but revision ${to}`)
  if (from === to) return refused(`both are revision ${to}`)
  const [before, after] = [stepOf(story, from), stepOf(story, to)]
  if (before === undefined) return refused(unknownText(story, from))
  if (after === undefined) return refused(unknownText(story, to))
  const bare = [before, after].find(({ configuration }) => configuration === undefined)
  if (before.configuration === undefined || after.configuration === undefined)
    return refused(
      bare?.change === "removed"
        ? `revision ${bare.revision} is its removal, which has no settings`
        : `revision ${bare?.revision} cannot be read`
    )
  return { from, to, differences: differencesOf(before.configuration, after.configuration) }
}

/** Returns which settings differ between two revisions of an endpoint, by default the last two. */
export const compareRevisions = Effect.fnUntraced(function* (
  { id, tenant }: EndpointName,
  revisions: Revisions = {}
) {
  const story = yield* readStory(tenant, id)
  return { tenant, id, ...compare(story, revisions) } satisfies Comparison
})

const pages = makeCursor("endpoint-history", StepPosition)

/** Shows the changes of an endpoint. */
export const history = operation("history", "GET", `${tenantPath}/endpoints/:id/history`, {
  scope: "endpoints:read",
  summary: "List the changes of an endpoint, newest first, also of a removed one",
  description: "The latest 500. Secrets and the values of headers are in none of them.",
  params: { tenant: Tenant, id: EndpointId },
  query: pageQuery,
  output: Schema.Struct({
    changes: Schema.Array(PagedStep.annotate({ identifier: "EndpointChange" })).annotateKey({
      description: "The changes, the newest first."
    }),
    next
  }).annotate({ identifier: "EndpointHistory" }),
  refusals: ["not-found"],
  within: ({ params }) => params.id,
  run: ({ params, query: { cursor, limit = defaultLimit } }) =>
    Effect.gen(function* () {
      const after = yield* pages.read(cursor)
      const { changes, next } = yield* readingHistory(pageHistory(params, after, limit))
      return { changes, ...pages.next(next) }
    })
})
