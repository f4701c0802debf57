import type { AttemptResult, ErrorClass } from "../../domain/outcome.ts"
import { AddressRefused } from "./connector.ts"
import { NameUnresolved } from "./dns.ts"

export type Failure = NonNullable<AttemptResult["error"]>

const maxMessageLength = 200

/** Makes a failure. The message is cut to one short line. */
export const failure = (kind: ErrorClass, message: string): Failure => {
  const line = message.split("\n", 1)[0] ?? ""
  return {
    class: kind,
    message: line.length > maxMessageLength ? `${line.slice(0, maxMessageLength - 1)}…` : line
  }
}

interface Parts {
  /** Always a string: a DOMException's code is a number. */
  readonly code: string
  readonly name: string
  readonly syscall: string
  readonly message: string
}

const partsOf = (error: unknown): Parts => {
  if (!(error instanceof Error)) return { code: "", name: "", syscall: "", message: String(error) }
  return {
    code: "code" in error ? String(error.code) : "",
    name: error.name,
    syscall: "syscall" in error ? String(error.syscall) : "",
    message: error.message === "" ? error.name : error.message
  }
}

/** Codes of OpenSSL's and Node's checks of a certificate. */
const certificate =
  /^(ERR_TLS_CERT_|CERT_|CRL_|UNABLE_TO_|DEPTH_ZERO_|SELF_SIGNED_|INVALID_CA$|INVALID_PURPOSE$|PATH_LENGTH_|HOSTNAME_MISMATCH$|ERROR_IN_CERT_)/
/** Other codes of Node's TLS and of OpenSSL. */
const handshake = /^(ERR_TLS_|ERR_SSL_|ERR_OSSL_|EPROTO$)/
const reset = /^(ECONNRESET|EPIPE|ECONNABORTED|UND_ERR_SOCKET)$/
const unreachable = /^(EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN)$/
const notHttp =
  /^(UND_ERR_HEADERS_OVERFLOW|UND_ERR_INVALID_ARG|UND_ERR_NOT_SUPPORTED|UND_ERR_RES_CONTENT_LENGTH_MISMATCH)$/
const unasked = /^bad (response|upgrade)$/

/** True where the connection ended within an answer. The HTTP spoken until then was valid. */
const brokeOff = ({ code, name, message }: Parts, answered: boolean): boolean =>
  (name === "HTTPParserError" && message.includes("EOF")) ||
  // Before the head is complete, undici reports the same code for a length that is not a number or
  // given twice.
  (code === "UND_ERR_RES_CONTENT_LENGTH_MISMATCH" && answered)

const classOf = (parts: Parts, answered: boolean): ErrorClass => {
  const { code, name, syscall, message } = parts
  if (code === "UND_ERR_CONNECT_TIMEOUT") return "connect-timeout"
  if (code === "ETIMEDOUT" && syscall === "connect") return "connect-timeout"
  if (certificate.test(code)) return "certificate"
  if (handshake.test(code)) return "handshake"
  if (brokeOff(parts, answered)) return "reset"
  if (code === "UND_ERR_SOCKET" && unasked.test(message)) return "protocol"
  // undici's parser accepts statuses that undici itself does not expect.
  if (code === "ERR_ASSERTION") return "protocol"
  if (name === "HTTPParserError" || notHttp.test(code)) return "protocol"
  if (code === "ECONNREFUSED") return "refused"
  if (unreachable.test(code)) return "unreachable"
  return reset.test(code) ? "reset" : "connection"
}

/**
 * Returns a message in our words where that of undici, OpenSSL or Node says too little or too much;
 * else their own.
 */
const messageOf = (parts: Parts, answered: boolean): string => {
  const { code, message } = parts
  const when = answered ? "before the answer was complete" : "before an answer"
  if (brokeOff(parts, answered))
    return "the receiver closed the connection before the answer was complete"
  switch (code) {
    case "UND_ERR_SOCKET":
      return unasked.test(message)
        ? `the receiver sent a ${message.slice("bad ".length)} that HTTP does not allow here`
        : `the receiver closed the connection ${when}`
    case "UND_ERR_RES_CONTENT_LENGTH_MISMATCH":
      return "the answer's content-length is wrong"
    case "ECONNRESET":
      return message === "read ECONNRESET" ? `the receiver reset the connection ${when}` : message
    case "UND_ERR_CONNECT_TIMEOUT":
      return `no connection within the time-out${/ \(.*\)$/.exec(message)?.[0] ?? ""}`
    case "ERR_ASSERTION":
      return "the receiver sent an answer that HTTP does not allow, such as a status below 100"
    case "UND_ERR_DESTROYED":
    case "UND_ERR_CLOSED":
      return "the worker is shutting down"
    default:
      return code.startsWith("ERR_SSL_")
        ? `TLS: ${/:SSL routines:[^:]*:([^:]+):/.exec(message)?.[1] ?? message}`
        : message.replace(/; if the root CA is installed locally.*$| - Local \(.*\)$/, "")
  }
}

/**
 * Maps an error of undici, net, tls or dns to the failure of an attempt.
 *
 * @param answered whether the head of an answer had arrived.
 */
export const failureOf = (error: unknown, answered: boolean): Failure => {
  if (error instanceof AddressRefused) return failure("address", error.message)
  if (error instanceof NameUnresolved) return failure("dns", error.message)
  // Happy eyeballs: one error per tried address, and no message of its own.
  if (error instanceof AggregateError && error.errors.length > 0) {
    const each = error.errors.map((part) => failureOf(part, answered))
    // A host without IPv6 has no route to any IPv6 address: the other addresses tell more.
    const telling = each.find((part) => part.class !== "unreachable") ?? each[0]
    return failure(
      telling?.class ?? "connection",
      [...new Set(each.map(({ message }) => message))].join("; ")
    )
  }
  const parts = partsOf(error)
  return failure(classOf(parts, answered), messageOf(parts, answered))
}
