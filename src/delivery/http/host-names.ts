import type { LookupAddress } from "node:dns"
import { isIP } from "node:net"
import { SystemFile } from "./system-file.ts"

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
