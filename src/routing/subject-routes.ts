import type { EventSubject } from "../domain/event.ts"
import { parseEventSubject } from "../domain/event.ts"
import type { Names } from "../domain/names.ts"
import type { Directory } from "../endpoints/directory.ts"
import { Recent } from "../endpoints/recent.ts"
import type { EndpointChoice } from "./plan.ts"
import { candidates } from "./plan.ts"

/** Where events of one subject go. */
interface Route extends EndpointChoice {
  readonly subject: EventSubject
  /** Names of the publisher's headers that any endpoint of its tenant gets; undefined for none. */
  readonly forwards: ReadonlyArray<string> | undefined
}

/** Maximum subjects in the cache that go to few endpoints each. */
const maxCachedSubjects = 1_000
/** Maximum endpoints of such a subject. */
const fewEndpoints = 100
/**
 * Maximum subjects in the cache that go to more endpoints, of which each takes 48 bytes: 1,000 subjects
 * that all go to 10,000 endpoints would take half a GB. What their deliveries cost is a hundred times
 * what finding their endpoints again does.
 */
const maxCachedLarge = 16

/**
 * Finds where events go by their subject. The result is cached per subject until an endpoint or the
 * directory's revision changes: for an event with one endpoint, finding it takes longer than the rest
 * of planning. The revision counts too, because a route may be asked for while the endpoints are read
 * again: the revision is 0 then, and the same endpoints are found before and after.
 */
export class SubjectRoutes {
  readonly #directory: Directory["Service"]
  readonly #names: Names
  #known = new Recent<Route>(maxCachedSubjects)
  #large = new Recent<Route>(maxCachedLarge)
  #version = -1
  #revision = -1

  constructor(directory: Directory["Service"], names: Names) {
    this.#directory = directory
    this.#names = names
  }

  of(subject: string): Route {
    const version = this.#directory.version()
    const revision = this.#directory.revision()
    if (version !== this.#version || revision !== this.#revision) {
      this.#known = new Recent(maxCachedSubjects)
      this.#large = new Recent(maxCachedLarge)
    }
    this.#version = version
    this.#revision = revision
    const known = this.#known.get(subject) ?? this.#large.get(subject)
    if (known !== undefined) return known
    const route = this.#find(subject)
    const cache = route.all.length <= fewEndpoints ? this.#known : this.#large
    cache.add(subject, route)
    return route
  }

  #find(text: string): Route {
    const subject = parseEventSubject(text, this.#names)
    const directory = this.#directory.revision()
    if ("problem" in subject) return { subject, all: [], directory, forwards: undefined }
    const { tenant, type } = subject
    const { forwardable, match, unreadable } = this.#directory
    const all = candidates(match(tenant, type), unreadable(tenant))
    return { subject, all, directory, forwards: forwardable(tenant) }
  }
}
