import type { Socket } from "node:net"
import type { NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node"
import { errors, NatsConnectionImpl, setTransportFactory } from "@nats-io/transport-node"
import { NodeTransport, nodeResolveHost } from "@nats-io/transport-node/lib/node_transport.js"
import { present } from "../domain/record.ts"

const ignore = () => undefined

/**
 * The client writes to a socket that the broker is ending, and takes its listeners off before that
 * write has failed. An error that nothing listens for ends the process.
 */
const keepErrorListener = (socket: Socket): void => {
  const removeAll = socket.removeAllListeners.bind(socket)
  // Without an argument it removes all: one that is undefined is taken for an event.
  socket.removeAllListeners = (...events: [] | [event?: string | symbol]) => {
    removeAll(...events)
    return socket.on("error", ignore)
  }
}

/** Called with why a connection was not made, and to which server. */
export type ConnectFailed = (cause: Error, server: string) => void

/** The client copies its options whole and gives them to each transport. */
interface Options extends NodeConnectionOptions {
  readonly connectFailed?: ConnectFailed
}

/** The transport of the client, whose sockets end no process. */
export class Transport extends NodeTransport {
  #server = ""
  /** What the broker answered to a login that it refuses without calling it an authorization. */
  #refusal: Error | undefined

  override connect(
    ...[to, options]: Parameters<NodeTransport["connect"]>
  ): ReturnType<NodeTransport["connect"]> {
    this.#server = `${to.hostname}:${to.port}`
    return super.connect(to, options)
  }

  /** @param cause given where the connection could not be made. */
  override close(cause?: Error): Promise<void> {
    if (cause !== undefined) {
      // A broker that refuses a client's certificate says so after the handshake, and ends the
      // connection. The client waits on, and knows of a time-out only, as where the broker has too
      // many connections.
      const why =
        cause instanceof errors.TimeoutError ? (this.#refusal ?? this.closeError ?? cause) : cause
      const { connectFailed }: Options = this.options
      connectFailed?.(why, this.#server)
    }
    return super.close(cause)
  }

  override setupHandlers(): void {
    keepErrorListener(this.socket)
    super.setupHandlers()
    for (const frame of this.yields) this.#hear(frame)
    this.socket.once("data", (frame: Buffer) => this.#hear(frame))
  }

  #hear(frame: Uint8Array): void {
    const said = /^-ERR '(.+)'/m.exec(Buffer.from(frame).toString("latin1"))?.[1]
    if (said !== undefined) this.#refusal ??= new errors.ProtocolError(said.toLowerCase())
  }
}

/**
 * Connects to a NATS server, as the client's own function does.
 *
 * @param connectFailed called whenever an attempt fails, the first ones and those to connect again.
 *   The client tells the last of the first ones, and nobody of the others.
 */
export const connect = (
  options: NodeConnectionOptions,
  connectFailed?: ConnectFailed
): Promise<NatsConnection> => {
  setTransportFactory({ factory: () => new Transport(), dnsResolveFn: nodeResolveHost })
  const all: Options = { ...options, ...present({ connectFailed }) }
  return NatsConnectionImpl.connect(all)
}
