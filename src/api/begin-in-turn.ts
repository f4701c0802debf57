import { IncomingMessage } from "node:http"
import * as NodeHttpServerRequest from "@effect/platform-node/NodeHttpServerRequest"
import { Effect, Option } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import type { IpNetwork } from "effect/net"
import { LiveTokens } from "../operations/tokens/live-tokens.ts"
import { clientAddress, networkOf } from "./client-address.ts"
import type { Connections } from "./connections.ts"
import { Insider, type InsiderRecord } from "./insider.ts"
import { problemResponse } from "./problems.ts"
import { credentialOf } from "./session-cookie.ts"
import { type Turns, turnOfTenant } from "./turns.ts"

/** Seconds after which a refused request is worth trying again. */
const retryAfter = 2

const noTurn = problemResponse(
  {
    status: 503,
    name: "unavailable",
    title: "It cannot be answered now",
    detail:
      "the console has more to do than it can, and others who use less of its time come first: try again"
  },
  { "retry-after": String(retryAfter) }
)

/**
 * Lets requests begin in the turn of their tenant, or of the client's address (with IPv6: its network)
 * where no valid token has come.
 */
export const beginInTurn = Effect.fnUntraced(function* <E, R>(
  answered: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
  turns: Turns,
  connections: Connections,
  proxies: ReadonlyArray<IpNetwork.IpNetwork>,
  isSecure: boolean
) {
  const tokens = yield* LiveTokens
  const keyOf = (
    request: HttpServerRequest.HttpServerRequest,
    insider: InsiderRecord | undefined
  ): string => {
    const { headers, remoteAddress } = request
    const { tenant } = insider ?? tokens.find(credentialOf(isSecure, request).token) ?? {}
    if (tenant !== undefined) return turnOfTenant(tenant)
    const peer = Option.getOrElse(remoteAddress, () => "")
    return `address ${networkOf(clientAddress(peer, headers["x-forwarded-for"], proxies) ?? peer)}`
  }
  const refusal = Effect.succeed(noTurn)
  return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
    const begun = Effect.suspend(() => {
      const { source } = request
      if (source instanceof IncomingMessage)
        connections.begin(source.socket, NodeHttpServerRequest.toServerResponse(request))
      return answered
    })
    return Effect.flatMap(Insider, (insider) =>
      turns.inTurn(keyOf(request, insider), begun, refusal)
    )
  })
})
