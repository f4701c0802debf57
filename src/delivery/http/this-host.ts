import type { LookupAddress } from "node:dns"
import { readFileSync, statSync } from "node:fs"
import { isIP } from "node:net"
import { networkInterfaces } from "node:os"
import { timers } from "../../time/timers.ts"

/** How long the addresses are cached, ms. */
const addressesMs = 5_000
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
  if (now - readAt < addressesMs) return
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

/** How long the content is cached, ms. */
const fileMs = 1_000

/** A small system configuration file. A change of the file applies within a second. */
export class SystemFile {
  readonly #path: string
  #lookedAt = Number.NEGATIVE_INFINITY
  #version = ""
  #text = ""

  constructor(path: string) {
    this.#path = path
  }

  /** Returns the content; an empty string where the file is missing or unreadable. */
  text(): string {
    const now = timers.monotonicMs()
    if (now - this.#lookedAt < fileMs) return this.#text
    this.#lookedAt = now
    try {
      const { ino, mtimeMs, size } = statSync(this.#path)
      const version = `${ino} ${size} ${mtimeMs}`
      if (version !== this.#version) this.#text = readFileSync(this.#path, "utf8")
      this.#version = version
    } catch {
      this.#version = ""
      this.#text = ""
    }
    return this.#text
  }
}

const hostsPath = "/etc/hosts"
const localhost = /^(.+\.)?localhost$/

const parsed = (text: string): ReadonlyMap<string, ReadonlyArray<LookupAddress>> => {
  const found = new Map<string, Array<LookupAddress>>()
  for (const line of text.split("\n")) {
    const [address = "", ...names] = line.replace(/#.*/, "").trim().split(/\s+/)
    const family = isIP(address)
    if (family === 0) continue
    for (const name of names.map((each) => each.toLowerCase().replace(/\.$/, "")))
      found.set(name, [...(found.get(name) ?? []), { address, family }])
  }
  return found
}

/** The names in the hosts file. A change of the file applies within a second. */
export class HostNames {
  readonly #file: SystemFile
  #text = ""
  #names: ReadonlyMap<string, ReadonlyArray<LookupAddress>> = new Map()

  constructor(path = hostsPath) {
    this.#file = new SystemFile(path)
  }

  /**
   * Returns the addresses of a name that needs no name server. `localhost` and names below it are
   * this host (RFC 6761), unless the file says otherwise.
   *
   * @param name in lower case, without a trailing dot.
   */
  find(name: string): ReadonlyArray<LookupAddress> | undefined {
    const text = this.#file.text()
    if (text !== this.#text) {
      this.#names = parsed(text)
      this.#text = text
    }
    const listed = this.#names.get(name)
    if (listed !== undefined || !localhost.test(name)) return listed
    return [
      { address: "127.0.0.1", family: 4 },
      { address: "::1", family: 6 }
    ]
  }
}
