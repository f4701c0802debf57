import { Result, Schema } from "effect"
import { Endpoint, endpointKey } from "../domain/endpoint.ts"
import { TenantSettings } from "../domain/settings/tenant-table.ts"
import { policiesOf } from "../policy/endpoint-policies.ts"

/** A stored configuration that does not parse: something other than Petrel wrote it. */
export class EndpointUnreadable extends Schema.TaggedError<EndpointUnreadable>()(
  "EndpointUnreadable",
  { key: Schema.String, problem: Schema.String }
) {
  override get message() {
    return `the configuration of endpoint ${this.key} does not parse: ${this.problem}`
  }
}

const decodeConfiguration = Schema.decodeUnknownResult(Schema.fromJsonString(Endpoint))

/** Encodes an endpoint for JSON. */
export const encodeEndpoint = Schema.encodeSync(Endpoint)

/** Decodes a value of the endpoints bucket. The retry policies of the result are known to resolve. */
export const decodeEndpoint = (
  key: string,
  value: string
): Result.Result<Endpoint, EndpointUnreadable> => {
  const unreadable = (problem: string) => Result.fail(new EndpointUnreadable({ key, problem }))
  const decoded = decodeConfiguration(value)
  if (Result.isFailure(decoded))
    return unreadable(decoded.failure.message.replaceAll(/\s*\n\s*/g, " "))
  const endpoint = decoded.success
  const own = endpointKey(endpoint.tenant, endpoint.id)
  if (own !== key) return unreadable(`it is that of ${own}`)
  const policies = policiesOf(endpoint)
  return Result.isFailure(policies)
    ? unreadable(policies.failure.message)
    : Result.succeed(endpoint)
}

/** Stored settings that do not parse: something other than this version of Petrel wrote them. */
export class SettingsUnreadable extends Schema.TaggedError<SettingsUnreadable>()(
  "SettingsUnreadable",
  { key: Schema.String, problem: Schema.String }
) {
  override get message() {
    return `the settings under ${this.key} in the bucket of endpoints do not parse (a newer Petrel may have written them: change them with that one): ${this.problem}`
  }
}

const SettingsJson = Schema.fromJsonString(TenantSettings)
const decodeSettingsJson = Schema.decodeUnknownResult(SettingsJson)

/** Returns settings as the bucket holds them. */
export const settingsText = Schema.encodeSync(SettingsJson)

/** Decodes the value under a settings key. */
export const decodeSettings = (
  key: string,
  value: string
): Result.Result<TenantSettings, SettingsUnreadable> =>
  Result.mapError(
    decodeSettingsJson(value),
    ({ message }) => new SettingsUnreadable({ key, problem: message.replaceAll(/\s*\n\s*/g, " ") })
  )
