import type { Socket } from "node:net"
import { connect as connectTcp, isIP } from "node:net"
import type { PeerCertificate, SecureContext, TLSSocket } from "node:tls"
import { connect as connectTls } from "node:tls"
import { Effect } from "effect"
import type {
  AddressCheck,
  ConnectionCheck,
  HandshakeCheck,
  ShownCertificate
} from "../../domain/connection-check.ts"
import type { LiveEndpoint } from "../../endpoints/directory.ts"
import { spanText } from "../../text/quantities.ts"
import { timers } from "../../time/timers.ts"
import type { AgentOptions } from "./connector.ts"
import { AddressRefused } from "./connector.ts"
import { NameResolver } from "./dns.ts"
import { failure, failureOf } from "./failure.ts"

/** Maximum addresses that are connected to. */
const maxAddresses = 8
/** Maximum certificates of a chain that are reported. */
const maxChain = 8
/** Maximum characters of a name in a certificate. */
const maxNameLength = 200

interface Peer {
  readonly host: string
  readonly address: string
  readonly port: number
  readonly isSecure: boolean
  readonly timeoutMs: number
  readonly secureContext: SecureContext | undefined
}

const tenths = (ms: number): number => Math.round(ms * 10) / 10

const cut = (text: string): string =>
  text.length <= maxNameLength ? text : `${text.slice(0, maxNameLength - 1)}…`

const oneOf = (value: string | ReadonlyArray<string> | undefined): string | undefined =>
  typeof value === "string" ? value : value?.[0]

const shown = ({ issuer, subject, subjectaltname, valid_from, valid_to }: PeerCertificate) =>
  ({
    subject: cut(oneOf(subject.CN) ?? subjectaltname?.split(", ")[0] ?? oneOf(subject.O) ?? "?"),
    issuer: cut(oneOf(issuer.CN) ?? oneOf(issuer.O) ?? "?"),
    validFrom: Date.parse(valid_from),
    validUntil: Date.parse(valid_to)
  }) satisfies ShownCertificate

const chainOf = (socket: TLSSocket): ReadonlyArray<ShownCertificate> => {
  const chain: Array<ShownCertificate> = []
  let certificate = socket.getPeerCertificate(true)
  while (Object.keys(certificate).length > 0 && chain.length < maxChain) {
    chain.push(shown(certificate))
    const { issuerCertificate } = certificate
    // The last certificate refers to itself, or to none.
    if (issuerCertificate === undefined || issuerCertificate === certificate) break
    if (issuerCertificate.fingerprint256 === certificate.fingerprint256) break
    certificate = issuerCertificate
  }
  return chain
}

const handshakeOf = (socket: TLSSocket): HandshakeCheck => {
  const { authorizationError } = socket
  const distrust = socket.authorized ? undefined : String(authorizationError ?? "not trusted")
  return {
    protocol: socket.getProtocol() ?? "unknown",
    chain: chainOf(socket),
    ...(distrust === undefined ? {} : { distrust })
  }
}

/** Begins a connection. `done` is called with its socket once the handshake is complete. */
const begin = (
  { address, host, isSecure, port, secureContext }: Peer,
  done: (secure?: TLSSocket) => void
): Socket => {
  if (!isSecure) return connectTcp({ host: address, port }, () => done())
  const socket = connectTls(
    {
      ...{ host: address, port, ALPNProtocols: ["http/1.1"] },
      // An untrusted certificate is what a diagnosis has to show; nothing is sent here.
      rejectUnauthorized: false,
      servername: isIP(host) === 0 ? host : "",
      ...(secureContext === undefined ? {} : { secureContext })
    },
    () => done(socket)
  )
  return socket
}

/** Connects to one address, closes the connection, and sends no request. */
const connectTo = (peer: Peer): Effect.Effect<AddressCheck> =>
  Effect.callback((resume) => {
    const startedAt = timers.monotonicMs()
    const settle = (found: Pick<AddressCheck, "error" | "tls">): void => {
      timers.cancel(timer)
      socket.destroy()
      const durationMs = tenths(timers.monotonicMs() - startedAt)
      resume(Effect.succeed({ address: peer.address, durationMs, ...found }))
    }
    const timer = timers.after(peer.timeoutMs, () =>
      settle({
        error: failure("connect-timeout", `no connection within ${spanText(peer.timeoutMs)}`)
      })
    )
    const socket = begin(peer, (secure) =>
      settle(secure === undefined ? {} : { tls: handshakeOf(secure) })
    )
    socket.on("error", (error) => settle({ error: failureOf(error, false) }))
    return Effect.sync(() => {
      timers.cancel(timer)
      socket.destroy()
    })
  })

const unbracketed = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1")

export interface CheckRequest {
  readonly tenant: string
  /** An http or https URL; only its origin matters. */
  readonly url: string
  /** Time limit for each address, ms. */
  readonly timeoutMs: number
}

/**
 * Looks up the host of a URL and connects to its addresses, under the same rules as requests, but
 * with connections of its own. Sends no request.
 */
export const checkConnection = (
  { refuses, resolve = new NameResolver().resolve, secureContext }: AgentOptions,
  { tenant, timeoutMs, url }: CheckRequest
): Effect.Effect<ConnectionCheck> =>
  Effect.gen(function* () {
    const target = new URL(url)
    const host = unbracketed(target.hostname)
    const isSecure = target.protocol === "https:"
    const port = Number(target.port) || (isSecure ? 443 : 80)
    const startedAt = timers.monotonicMs()
    const isLiteral = isIP(host) !== 0
    const found = isLiteral
      ? [{ address: host, family: isIP(host) }]
      : yield* Effect.callback<Parameters<Parameters<typeof resolve>[2]>[0]>((resume) =>
          resolve(host, tenant, (result) => resume(Effect.succeed(result)))
        )
    const about = {
      ...{ host, port, isSecure },
      ...(isLiteral ? {} : { lookupMs: tenths(timers.monotonicMs() - startedAt) })
    }
    if (found instanceof Error)
      return { ...about, refused: 0, addresses: [], error: failureOf(found, false) }
    const allowed = found.filter(({ address }) => refuses(address, port) === undefined)
    const refused = found.length - allowed.length
    const [first] = found
    const refusal = first === undefined ? undefined : refuses(first.address, port)
    if (allowed.length === 0 && first !== undefined && refusal !== undefined) {
      const error = failureOf(new AddressRefused(host, port, first.address, refusal), false)
      return { ...about, refused, addresses: [], error }
    }
    const addresses = yield* Effect.forEach(
      allowed.slice(0, maxAddresses),
      ({ address }) => connectTo({ host, address, port, isSecure, timeoutMs, secureContext }),
      { concurrency: maxAddresses }
    )
    return { ...about, refused, addresses }
  })

/** A check waits no longer than this for a connection, whatever the endpoint's time-out, ms. */
const maxConnectMs = 15_000

/** Tries the way to an endpoint's host; undefined for an endpoint that is not known. */
export const checkEndpoint = (
  check: (request: CheckRequest) => Effect.Effect<ConnectionCheck>,
  endpoint: LiveEndpoint | undefined
): Effect.Effect<ConnectionCheck> | undefined => {
  if (endpoint === undefined) return undefined
  const { config, policyFor } = endpoint
  const { connectTimeout } = policyFor("")
  return check({
    tenant: config.tenant,
    url: config.url,
    timeoutMs: Math.min(connectTimeout, maxConnectMs)
  })
}
