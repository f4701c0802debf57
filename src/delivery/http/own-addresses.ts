import { networkInterfaces } from "node:os"
import { timers } from "../../time/timers.ts"

/** How long the addresses are cached, ms. */
const refreshMs = 5_000
/** Global unicast: interfaces print all four digits of a first group that is not zero. */
const globalV6 = /^[23][0-9a-f]{3}:/i

let readAt = Number.NEGATIVE_INFINITY
let addresses: ReadonlySet<string> = new Set()
let isReachedByV6 = false

/** Returns undefined where the interfaces cannot be read now; fails where that never worked. */
const interfaces = () => {
  try {
    return Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  } catch (error) {
    if (addresses.size === 0) throw error
    return undefined
  }
}

const refresh = (): void => {
  const now = timers.monotonicMs()
  if (now - readAt < refreshMs) return
  readAt = now
  const all = interfaces()
  if (all === undefined) return
  addresses = new Set(all.map(({ address }) => address.replace(/%.*$/, "")))
  isReachedByV6 = all.some(({ address, internal }) => !internal && globalV6.test(address))
}

/** Returns the addresses of this host's network interfaces, at most 5 s old. */
export const ownAddresses = (): ReadonlySet<string> => {
  refresh()
  return addresses
}

/** True where this host has a global IPv6 address, so that IPv6 should be tried first. */
export const hasGlobalV6 = (): boolean => {
  refresh()
  return isReachedByV6
}
