import type { IncomingEvent } from "../domain/intake.ts"
import type { ReceivedRequest } from "../providers/provider.ts"

/** Headers of a request that are kept with its events: at most so many, with so many characters. */
const maxHeaders = 32
const maxHeaderLength = 4_096

/** Headers that authenticate a request, or say how it travelled. */
export const isPrivate = (name: string): boolean =>
  /authorization|cookie|signature|token|secret|hmac|api-?key|forwarded|real-ip|client-ip/.test(name)

const plain = /^[\x20-\x7e]*$/

/** Returns the headers of a request that an endpoint may be given: the provider's own. */
export const keptHeaders = ({
  headers
}: Pick<ReceivedRequest, "headers">): NonNullable<IncomingEvent["headers"]> => {
  const kept: Array<readonly [string, string]> = []
  let length = 0
  for (const [name, value] of Object.entries(headers)) {
    if (!name.startsWith("x-") || value === undefined || isPrivate(name)) continue
    length += name.length + value.length
    if (kept.length >= maxHeaders || length > maxHeaderLength) break
    if (plain.test(value)) kept.push([name, value])
  }
  return kept
}

/** Returns what an event keeps of its request's headers: the provider's own, and the trace. */
export const keptOfRequest = (
  request: Pick<ReceivedRequest, "headers">
): Pick<IncomingEvent, "headers" | "traceparent"> => {
  const { traceparent } = request.headers
  return {
    ...(traceparent === undefined || !plain.test(traceparent) ? {} : { traceparent }),
    headers: keptHeaders(request)
  }
}
