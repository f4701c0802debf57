import type { AddressInfo, Server } from "node:net"
import { Effect, Schema } from "effect"

/** Where to listen. Port 0 takes a free one. */
export interface ListenAddress {
  readonly host: string
  readonly port: number
}

/** Parses `127.0.0.1:9464`, `[::1]:9464` or `:9464`, which is all addresses. */
export const readListenAddress = (text: string): ListenAddress | undefined => {
  const [, ip6, name = "", digits] =
    /^(?:\[([0-9a-fA-F:.]+)\]|([^\s:[\]/]*)):(\d{1,5})$/.exec(text) ?? []
  const port = Number(digits ?? "-1")
  if (digits === undefined || port > 65_535) return undefined
  return { host: ip6 ?? (name === "" ? "::" : name), port }
}

/** Formats an address as it is written in a URL. */
export const listenText = ({ host, port }: ListenAddress): string =>
  `${host.includes(":") ? `[${host}]` : host}:${port}`

/** Nothing can listen at an address. The code is the system's, such as EADDRINUSE. */
export class ListenRefused extends Schema.TaggedError<ListenRefused>()("ListenRefused", {
  code: Schema.String,
  message: Schema.String
}) {}

/**
 * Makes a server listen. Returns its port. Fails with ListenRefused if the address cannot be used.
 *
 * @param backlog connections that the kernel keeps until they are accepted. (Default: 511)
 */
export const listen = (server: Server, { host, port }: ListenAddress, backlog = 511) =>
  Effect.callback<number, ListenRefused>((resume) => {
    server.once("error", (error: NodeJS.ErrnoException) =>
      resume(Effect.fail(new ListenRefused({ code: error.code ?? "", message: error.message })))
    )
    server.listen({ host, port, backlog }, () => {
      // A connection that cannot be accepted is that client's problem.
      server.on("error", () => undefined)
      resume(Effect.succeed((server.address() as AddressInfo).port))
    })
  })
