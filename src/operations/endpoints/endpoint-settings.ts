import { Option, Result, Schema, SchemaGetter } from "effect"
import { RetryPolicy } from "../../domain/retry-policy.ts"
import {
  endpointRequests,
  endpointSettings,
  RateLimit,
  retryForEntries
} from "../../domain/settings/endpoint-table.ts"
import { byName, column } from "../../domain/settings/setting.ts"
import { resolveRetry } from "../../policy/presets.ts"
import { rateExpected, ratePattern, rateText, readRate } from "../../policy/rate.ts"

const PresetName = Schema.String.check(
  Schema.makeFilter((name: string) =>
    Result.match(resolveRetry(name), {
      onSuccess: () => undefined,
      onFailure: ({ message }) => message
    })
  )
)

/** The name of a preset, or an inline policy. */
export const RetryChoice = Schema.Union([PresetName, RetryPolicy])
export type RetryChoice = typeof RetryChoice.Type

const RateInWords = Schema.String.check(
  Schema.makeFilter((text: string) => (readRate(text) === undefined ? rateExpected : undefined), {
    toJsonSchema: () => ({ pattern: ratePattern, examples: ["20/s burst 40"] })
  })
)
  .pipe(
    Schema.decodeTo(RateLimit, {
      decode: SchemaGetter.transformOptional((text) =>
        Option.flatMap(text, (given: string) => Option.fromUndefinedOr(readRate(given)))
      ),
      encode: SchemaGetter.transform(rateText)
    })
  )
  .annotate({
    identifier: "RateInWords",
    description: "Such as `20/s burst 40`.",
    expected: "a rate such as '20/s burst 40'"
  })

/** A rate as people write it (`20/s burst 40`), or its numbers. */
export const RateChoice = Schema.Union([RateLimit, RateInWords])

/** The settings as people give them: rates in words, and names of presets that are checked. */
const settings = {
  ...endpointSettings,
  rate: {
    ...endpointSettings.rate,
    given: Schema.optional(RateChoice),
    patch: Schema.optional(Schema.NullOr(RateChoice))
  },
  retry: {
    ...endpointSettings.retry,
    given: Schema.optional(RetryChoice),
    patch: Schema.optional(RetryChoice)
  },
  retryFor: { ...endpointSettings.retryFor, ...byName({ ...retryForEntries, value: RetryChoice }) }
}

/** All that may be asked for of an endpoint, with what is said of it. */
export const endpointInputs = { ...settings, ...endpointRequests }

/** The settings of an endpoint to be added. Without a value, the default applies. */
export const NewEndpoint = Schema.Struct(column(endpointInputs, "given"))
export type NewEndpoint = typeof NewEndpoint.Type

/** A change of an endpoint. What is left out stays as it is; null removes a setting. */
export const EndpointPatch = Schema.Struct(column(endpointInputs, "patch"))
export type EndpointPatch = typeof EndpointPatch.Type
