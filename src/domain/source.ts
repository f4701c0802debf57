import { Schema } from "effect"
import { documentedAs } from "./documented-check.ts"
import { durationBetween, PositiveDuration } from "./duration.ts"
import { Secret } from "./endpoint.ts"
import { sourceNameProblem } from "./intake.ts"
import { RateLimit } from "./settings/endpoint-table.ts"
import { Timestamp } from "./timestamp.ts"
import { isToken, Token } from "./token.ts"

/** The name of a source within its tenant: the first token of its events' types. */
export const SourceId = Token.check(Schema.makeFilter(sourceNameProblem))

const maxApiKeyChars = 4_096
const ApiKey = Schema.String.check(
  Schema.makeFilter(
    (key: string) =>
      /^[!-~]+$/.test(key) && key.length <= maxApiKeyChars
        ? undefined
        : `must be 1 to ${maxApiKeyChars} visible characters of ASCII`,
    { toJsonSchema: () => ({ pattern: "^[!-~]+$", maxLength: maxApiKeyChars }) }
  )
)

const TypePatterns = Schema.Array(
  Schema.String.check(documentedAs({ minLength: 1, maxLength: 200 }))
).check(
  Schema.makeFilter(
    (patterns: ReadonlyArray<string>) =>
      patterns.length >= 1 &&
      patterns.length <= 100 &&
      patterns.every((one) => one !== "" && one.length <= 200)
        ? undefined
        : "must be 1 to 100 patterns of 1 to 200 characters, such as invoice.*",
    { toJsonSchema: () => ({ minItems: 1, maxItems: 100 }) }
  )
)

/** What is set of a source, beside its provider and secrets. */
export const sourceSettings = {
  tolerance: Schema.optionalKey(PositiveDuration).annotateKey({
    description: "How far the signed time may be off."
  }),
  publicUrl: Schema.optionalKey(Schema.String).annotateKey({
    description: "The URL that the provider was given, where it signs that."
  }),
  webhookId: Schema.optionalKey(Schema.String).annotateKey({
    description:
      "What the provider calls the webhook: where it signs that, and where its API is asked for what it has sent (providers/listings)."
  }),
  verifyToken: Schema.optionalKey(Schema.String).annotateKey({
    description: "What the provider repeats when the webhook is set up. A secret."
  }),
  scheme: Schema.optionalKey(Schema.Record(Schema.String, Schema.String)).annotateKey({
    description: "How a sender of the provider `hmac` signs."
  }),
  rate: Schema.optionalKey(RateLimit).annotateKey({
    description:
      "Requests that each gateway takes; others are refused for now, and the provider sends them again. (Default: no limit)"
  }),
  apiKey: Schema.optionalKey(ApiKey).annotateKey({
    description: "Credentials for the provider's API. A secret."
  }),
  apiUrl: Schema.optionalKey(Schema.String).annotateKey({
    description: "Where the provider's API is. (Default: the provider's own)"
  }),
  /** How often gateways fetch what never came in. (Default: never) */
  reconcile: Schema.optionalKey(
    durationBetween([60_000, "1 minute"], [7 * 24 * 3_600_000, "7 days"])
  ),
  reconcileTypes: Schema.optionalKey(TypePatterns).annotateKey({
    description:
      "Patterns of the provider's types that are then compared: `invoice.*`. (Default: those that the webhook gets, or all)"
  }),
  /** How many events may be missing before `provider-lost` is recorded in the history. (Default: 0) */
  alertAbove: Schema.optionalKey(
    Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 1_000_000 }))
  )
}

/**
 * A source of events: a provider's webhooks that come in for a tenant. The value under
 * `<tenant>.<source>` in the bucket of sources. Times in ms since the epoch.
 */
export const Source = Schema.Struct({
  v: Schema.Literal(1).annotateKey({ description: "The version of the record." }),
  tenant: Token.annotateKey({ description: "The name of the tenant." }),
  id: SourceId,
  provider: Schema.String.annotateKey({
    description: "The name of the provider."
  }),
  secrets: Schema.Array(Secret).annotateKey({
    description: "Newest first. A rotation sets `until` on those that it replaces."
  }),
  ...sourceSettings,
  createdAt: Timestamp.annotateKey({ description: "When it was made." }),
  updatedAt: Timestamp.annotateKey({ description: "When it was changed last." })
})
export type Source = typeof Source.Type

export interface SourceName {
  readonly tenant: string
  readonly id: string
}

/** Returns the key of a source in its bucket. */
export const sourceKey = ({ id, tenant }: SourceName): string => `${tenant}.${id}`

/** Returns a source's name for people: `acme/stripe`. */
export const sourceLabel = ({ id, tenant }: SourceName): string => `${tenant}/${id}`

/** Parses `acme/stripe`. Returns undefined for any other text. */
export const readSourceLabel = (text: string): SourceName | undefined => {
  const [tenant = "", id = "", ...rest] = text.split("/")
  return isToken(tenant) && sourceNameProblem(id) === undefined && rest.length === 0
    ? { tenant, id }
    : undefined
}

/**
 * What the history tells of a change of a source: no secret, and no value of a setting. A removal
 * names no settings.
 */
export const SourceChange = Schema.Struct({
  id: Schema.String,
  provider: Schema.String.annotateKey({ description: "The name of the provider." }),
  revision: Schema.Int.annotateKey({ description: "The revision in the bucket of sources." }),
  changed: Schema.Array(Schema.String).annotateKey({
    description: "The settings that differ from before, by name; of a new source those that it has."
  })
})
export type SourceChange = typeof SourceChange.Type
