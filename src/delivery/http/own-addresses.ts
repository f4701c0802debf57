import { networkInterfaces } from "node:os"

/** How long what was read is taken for true, ms. */
const refreshMs = 5_000
/** Global unicast: interfaces show all four digits of a first group that is not zero. */
const globalV6 = /^[23][0-9a-f]{3}:/i

let readAt = Number.NEGATIVE_INFINITY
let addresses: ReadonlySet<string> = new Set()
let isReachedByV6 = false

/** Nothing where they cannot be read just now, and fails where that never worked. */
const interfaces = () => {
  try {
    return Object.values(networkInterfaces()).flatMap((each) => each ?? [])
  } catch (error) {
    if (addresses.size === 0) throw error
    return undefined
  }
}

const refresh = (): void => {
  const now = performance.now()
  if (now - readAt < refreshMs) return
  readAt = now
  const all = interfaces()
  if (all === undefined) return
  addresses = new Set(all.map(({ address }) => address.replace(/%.*$/, "")))
  isReachedByV6 = all.some(({ address, internal }) => !internal && globalV6.test(address))
}

/** The addresses of this host's network interfaces, at most 5 s old. */
export const ownAddresses = (): ReadonlySet<string> => {
  refresh()
  return addresses
}

/** True where this host has a global IPv6 address, so that connections over IPv6 are worth a try first. */
export const hasGlobalV6 = (): boolean => {
  refresh()
  return isReachedByV6
}
