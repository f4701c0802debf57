import { Duration, Result } from "effect"
import type { Endpoint } from "../../domain/endpoint.ts"
import { refusalOf, usualPorts } from "../../policy/address.ts"
import { resolveRetry } from "../../policy/presets.ts"
import { durationText } from "../text/time.ts"

const shortTimeout = 10_000

/** Loopback addresses: `petrel dev` allows them. */
const loopback = /^(localhost$|127\.|::1$)/
/**
 * Link-local addresses and the metadata services of clouds, which return credentials to any client.
 */
const neverMeant = /^(169\.254\.|fe[89ab][0-9a-f]:|fd00:ec2::254$)/

const unbracketed = (hostname: string): string => hostname.replace(/^\[(.*)\]$/, "$1")

const isPublic = (address: string): boolean =>
  refusalOf(address, 443, { networks: [], ports: [] }, new Set()) === undefined

const addressCaution = ({ hostname, port }: URL): string | undefined => {
  const address = unbracketed(hostname)
  const isLiteral = /^[\d.]+$/.test(address) || address.includes(":")
  if (address !== "localhost" && (!isLiteral || isPublic(address)))
    return port === "" || usualPorts.includes(Number(port))
      ? undefined
      : `port ${port} is neither 443 nor 80: \`petrel worker\` sends there only with --allow-port ${port}, or to an address that --allow-network opens`
  const problem = `${hostname} is not a public address`
  if (neverMeant.test(address)) return `${problem}: requests to it are refused`
  if (!loopback.test(address))
    return `${problem}: \`petrel worker\` sends there only with --allow-network ${address}`
  const network = address === "localhost" ? "127.0.0.1" : address
  return `${problem}: \`petrel dev\` sends there; \`petrel worker\` only with --allow-network ${network}`
}

const plainTextCaution = ({ headers, url }: Endpoint): string | undefined => {
  const { hostname, protocol, search } = new URL(url)
  if (protocol === "https:" || loopback.test(unbracketed(hostname))) return undefined
  const exposed = [
    ...(search === "" ? [] : ["the URL's query"]),
    ...Object.keys(headers).map((name) => `the header ${name}`)
  ]
  return exposed.length === 0
    ? undefined
    : `the URL is http: whoever is on the way can read ${exposed.join(" and ")}; use https where that is a credential`
}

/** Returns warnings about settings that are valid but seldom intended. */
export const cautions = (endpoint: Endpoint): ReadonlyArray<string> => {
  const found: Array<string> = []
  for (const caution of [addressCaution(new URL(endpoint.url)), plainTextCaution(endpoint)])
    if (caution !== undefined) found.push(caution)
  const policy = Result.getOrUndefined(resolveRetry(endpoint.retry))
  const timeout = endpoint.timeout ?? policy?.timeout
  if (timeout !== undefined && Duration.toMillis(timeout) < shortTimeout) {
    const whose = endpoint.timeout === undefined ? "the retry policy's time-out" : "the time-out"
    found.push(
      `${whose} of ${durationText(timeout)} is short: a slow answer counts as a failure, and the receiver sees the event again; 10 s or more is usual`
    )
  }
  return found
}
