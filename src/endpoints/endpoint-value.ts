import { Result, Schema } from "effect"
import { Endpoint, endpointKey } from "../domain/endpoint.ts"
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

const decode = Schema.decodeUnknownResult(Schema.fromJsonString(Endpoint))
/** Encodes an endpoint for JSON. */
export const encodeEndpoint = Schema.encodeSync(Endpoint)

/** Decodes a value of the endpoints bucket. The retry policies of the result are known to resolve. */
export const decodeEndpoint = (
  key: string,
  value: string
): Result.Result<Endpoint, EndpointUnreadable> => {
  const unreadable = (problem: string) => Result.fail(new EndpointUnreadable({ key, problem }))
  const decoded = decode(value)
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
