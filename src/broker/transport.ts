import type { Socket } from "node:net"
import type { NatsConnection, NodeConnectionOptions } from "@nats-io/transport-node"
import { NatsConnectionImpl, setTransportFactory } from "@nats-io/transport-node"
import { NodeTransport, nodeResolveHost } from "@nats-io/transport-node/lib/node_transport.js"

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
type ConnectFailed = (cause: Error, server: string) => void

/** Listeners by the options of the client's connection, which it gives to each transport. */
const listeners = new WeakMap<object, ConnectFailed>()

/**
 * Calls the listener whenever an attempt to connect again fails, where there is an error. The client
 * tells nobody.
 */
export const onConnectFailed = (connection: NatsConnectionImpl, failed: ConnectFailed): void => {
  listeners.set(connection.options, failed)
}

/** The transport of the client, whose sockets end no process. */
export class Transport extends NodeTransport {
  #server = ""

  override connect(
    ...[to, options]: Parameters<NodeTransport["connect"]>
  ): ReturnType<NodeTransport["connect"]> {
    this.#server = `${to.hostname}:${to.port}`
    return super.connect(to, options)
  }

  /** @param cause given where the connection could not be made. */
  override close(cause?: Error): Promise<void> {
    if (cause !== undefined) listeners.get(this.options)?.(cause, this.#server)
    return super.close(cause)
  }

  override setupHandlers(): void {
    keepErrorListener(this.socket)
    super.setupHandlers()
  }
}

/** Connects to a NATS server, as the client's own function does. */
export const connect = (options: NodeConnectionOptions): Promise<NatsConnection> => {
  setTransportFactory({ factory: () => new Transport(), dnsResolveFn: nodeResolveHost })
  return NatsConnectionImpl.connect(options)
}
