import type { GetHeader } from "./event.ts"
import { readOrigin } from "./origin.ts"

/** The header by which the API says how an event was published through it. */
export const channelHeader = "petrel-channel"

/** How an event comes through the API: over HTTP, or as a request over NATS. */
const apiChannels = ["http", "nats-api"] as const
export type ApiChannel = (typeof apiChannels)[number]

/** How an event came that was published to its subject. */
export const directChannel = "nats"

/**
 * Returns how an event came: through the API, or copied from a stream (`stream:ORDERS`). Undefined
 * for one that was published to its subject, as any is that says nothing else of itself.
 */
export const channelOf = (get: GetHeader): string | undefined => {
  const origin = readOrigin(get("nats-stream-source"))
  if (origin !== undefined) return `stream:${origin.stream}`
  const named = get(channelHeader)
  return apiChannels.find((channel) => channel === named)
}
