import { Result, Schema } from "effect"
import { RetryPolicy } from "../../domain/retry-policy.ts"
import {
  endpointRequests,
  endpointSettings,
  retryForEntries
} from "../../domain/settings/endpoint-table.ts"
import { byName, column } from "../../domain/settings/setting.ts"
import { Token } from "../../domain/token.ts"
import { resolveRetry } from "../../policy/presets.ts"

/** The name of an endpoint: `<tenant>/<id>`. */
export const EndpointName = Schema.Struct({ tenant: Token, id: Token })
export type EndpointName = typeof EndpointName.Type

/** Returns an endpoint's name for people: `acme/billing`. */
export const endpointLabel = ({ id, tenant }: EndpointName): string => `${tenant}/${id}`

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

/** The settings as people give them: the names of presets are checked. */
const settings = {
  ...endpointSettings,
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
