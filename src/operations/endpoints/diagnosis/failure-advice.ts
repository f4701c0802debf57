import type { ErrorClass } from "../../../domain/outcome.ts"

/**
 * Returns what to do about attempts that got no usable answer.
 *
 * @param name `<tenant>/<endpoint>`, for the commands in the text.
 */
export const errorAdvice = (kind: ErrorClass, name: string): string => {
  switch (kind) {
    case "timeout":
      return `The receiver takes longer than its time-out. It should answer first and work afterwards; until then: petrel endpoint set ${name} --timeout '1 minute'.`
    case "connect-timeout":
      return "Packets are dropped on the way: check the receiver's firewall, and that it lets in the workers' addresses."
    case "refused":
      return `Nothing listens there: start the receiver, or correct host and port: petrel endpoint set ${name} --url URL.`
    case "reset":
      return "The receiver, or a proxy in front of it, closes connections: look at its log, at its limits of body and connections, and at its time-out of idle connections."
    case "unreachable":
      return "No route leads there: check the network of the workers, IPv6 among it."
    case "connection":
      return "The connection fails: check the way from the workers to the receiver."
    case "dns":
      return `Correct the host's name, or its DNS entry: petrel endpoint set ${name} --url URL.`
    case "certificate":
      return "Mend the receiver's certificate, or start the workers with --receiver-ca, where its authority is one of your own."
    case "handshake":
      return `The other side speaks no TLS that fits: check that the port is that of https, and that it takes TLS 1.2 or newer.`
    case "address":
      return "The address or port is not allowed: where it is meant, start the workers with --allow-network or --allow-port."
    case "protocol":
      return "What answers there is no HTTP server: check host and port."
    case "redirect":
      return `Point the endpoint at where it redirects to: petrel endpoint set ${name} --url URL; or, where that is meant, name the other origin with --redirects-to.`
    case "interrupted":
      return "The endpoint was disabled while a request was under way, which the worker then ended: nothing is wrong with the receiver."
  }
}

/**
 * Returns what to do about answers with a status that is no success.
 *
 * @param name `<tenant>/<endpoint>`, for the commands in the text.
 * @param goesOn whether the endpoint's deliveries are tried again now.
 */
export const statusAdvice = (status: number, name: string, goesOn: boolean): string => {
  switch (status) {
    case 400:
    case 422:
      return "The receiver does not accept the content: see its answer, and the body with petrel dead show; if it complains of the signature, see what is said of 401."
    case 401:
    case 403:
      return `The receiver does not accept the signature or the credentials: compare its secret with petrel endpoint show ${name} --reveal, its header names with the endpoint's, and its clock with the time (a signature holds for some minutes); petrel endpoint rotate makes a new secret.`
    case 404:
      return `The path is wrong, or the receiver's route is gone: petrel endpoint set ${name} --url URL.`
    case 405:
      return `The receiver takes no POST there: correct the path with petrel endpoint set ${name} --url URL.`
    case 408:
      return "The receiver gave up waiting for the request: look for a slow proxy on the way."
    case 410:
      return `The receiver wants no more events: ask its owner, then remove it (petrel endpoint remove ${name}) or correct its URL.`
    case 413:
      return "The body is larger than the receiver takes: raise its limit, or publish less in one event."
    case 415:
      return "The receiver does not take the content type: publish with the content-type that it expects."
    case 429:
      return `The receiver limits requests: petrel endpoint set ${name} --rate with what it takes, or --adapt on.`
    case 502:
    case 503:
    case 504:
      return "A proxy answers for a receiver that is down, overloaded or too slow: look at what is behind it. petrel endpoint set --max-in-flight spares it."
    default:
      if (status >= 500)
        return `The receiver fails inside: its log, at the times above, says why.${goesOn ? " Nothing has to be done here; retries go on." : ""}`
      if (status >= 300 && status < 400)
        return `It redirects, and redirects are not followed: point the endpoint there with petrel endpoint set ${name} --url URL, or follow them with --redirects 3 (and --redirects-to, where they lead to another origin).`
      return "The receiver refuses the requests: its answer and its log say why."
  }
}
