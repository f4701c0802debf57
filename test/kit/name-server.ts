import { createSocket } from "node:dgram"
import { Effect } from "effect"
import { makeConditions } from "./conditions.ts"

/** A name server's answer: addresses, an error, or no answer at all. */
export type NameAnswer =
  | { readonly a?: ReadonlyArray<string>; readonly aaaa?: ReadonlyArray<string>; ttl?: number }
  | "NXDOMAIN"
  | "SERVFAIL"
  | "silent"

const typeA = 1
const typeAaaa = 28
const codes = { NXDOMAIN: 3, SERVFAIL: 2 }
const headerBytes = 12

const labelsOf = (query: Buffer): { readonly name: string; readonly end: number } => {
  const labels: Array<string> = []
  let at = headerBytes
  for (let length = query[at] ?? 0; length > 0; length = query[at] ?? 0) {
    labels.push(query.toString("latin1", at + 1, at + 1 + length))
    at += 1 + length
  }
  return { name: labels.join(".").toLowerCase(), end: at + 1 }
}

/** @param address an IPv6 address with all eight groups, or an IPv4 address. */
const addressBytes = (address: string): Buffer =>
  address.includes(":")
    ? Buffer.from(
        address
          .split(":")
          .map((group) => group.padStart(4, "0"))
          .join(""),
        "hex"
      )
    : Buffer.from(address.split(".").map(Number))

const record = (type: number, ttl: number, address: string): Buffer => {
  const data = addressBytes(address)
  const head = Buffer.alloc(headerBytes)
  head.writeUInt16BE(0xc00c, 0) // pointer to the name in the question
  head.writeUInt16BE(type, 2)
  head.writeUInt16BE(1, 4)
  head.writeUInt32BE(ttl, 6)
  head.writeUInt16BE(data.length, 10)
  return Buffer.concat([head, data])
}

const reply = (query: Buffer, end: number, type: number, answer: NameAnswer): Buffer => {
  const isError = typeof answer === "string"
  const addresses = isError ? [] : ((type === typeA ? answer.a : answer.aaaa) ?? [])
  const ttl = isError ? 0 : (answer.ttl ?? 60)
  const head = Buffer.alloc(headerBytes)
  query.copy(head, 0, 0, 2)
  head.writeUInt16BE(
    0x8180 | (answer === "NXDOMAIN" || answer === "SERVFAIL" ? codes[answer] : 0),
    2
  )
  head.writeUInt16BE(1, 4)
  head.writeUInt16BE(addresses.length, 6)
  return Buffer.concat([
    head,
    query.subarray(headerBytes, end + 4),
    ...addresses.map((address) => record(type, ttl, address))
  ])
}

/**
 * A DNS server on a free UDP port of loopback.
 *
 * @param script the answer for a lower-case name. IPv6 addresses have all eight groups.
 */
export const nameServer = Effect.fnUntraced(function* (
  script: (name: string, family: 4 | 6) => NameAnswer
) {
  const conditions = makeConditions()
  const asked: Array<string> = []
  const socket = createSocket("udp4")
  socket.on("message", (query, { address, port }) => {
    const { end, name } = labelsOf(query)
    const type = query.readUInt16BE(end)
    if (type === typeA || type === typeAaaa) asked.push(name)
    const answer = script(name, type === typeA ? 4 : 6)
    if (answer !== "silent") socket.send(reply(query, end, type, answer), port, address)
    conditions.changed()
  })
  yield* Effect.acquireRelease(
    Effect.callback<void>((resume) => {
      socket.bind(0, "127.0.0.1", () => resume(Effect.void))
    }),
    () => Effect.callback<void>((resume) => void socket.close(() => resume(Effect.void)))
  )
  return {
    /** The server's address, as `Names` expects it. */
    server: `127.0.0.1:${socket.address().port}`,
    /** Queried names in order, one entry for A and one for AAAA. */
    asked,
    heard: (count: number) => conditions.until(() => asked.length >= count)
  }
})
