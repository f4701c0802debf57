import { type ComponentChildren, Fragment } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { useAsked } from "./data.ts"
import { isTyping, moveInRows, switchTheme, theme } from "./parts.tsx"
import { address, filter, go, path, pathTenant, query } from "./router.ts"
import { logOut, may, petrel, session } from "./session.ts"
import { isUtc, switchTimes } from "./times.tsx"

/** The tenant that pages are about: the session's own, or the one that an operator has chosen. */
export const shownTenant = (): string => {
  const own = session.value?.tenant ?? "*"
  return own === "*" ? (query.value.tenant ?? pathTenant.value ?? "*") : own
}

/** The endpoint that lists are narrowed to. */
export const shownEndpoint = (): string | undefined => {
  const own = session.value?.endpoint
  return own ?? query.value.endpoint
}

interface PageLink {
  readonly name: string
  readonly title: string
  readonly isFor: () => boolean
}

const ofTenant = () => session.value?.endpoint === undefined
const bulkScopes = ["dead:write", "replay:write", "endpoints:write"]

/** The pages, in groups: what goes out, what comes in, and what both stand on. */
const groups: ReadonlyArray<ReadonlyArray<PageLink>> = [
  [
    { name: "", title: "Overview", isFor: () => ofTenant() && may("deliveries:read") },
    { name: "deliveries", title: "Deliveries", isFor: () => may("deliveries:read") },
    { name: "endpoints", title: "Endpoints", isFor: () => may("endpoints:read") },
    { name: "dead-letters", title: "Dead letters", isFor: () => may("dead:read") },
    { name: "jobs", title: "Jobs", isFor: () => ofTenant() && bulkScopes.some(may) },
    { name: "live", title: "Live", isFor: () => may("deliveries:read") },
    { name: "alerts", title: "Alerts", isFor: () => ofTenant() && may("deliveries:read") }
  ],
  [
    { name: "sources", title: "Sources", isFor: () => ofTenant() && may("endpoints:read") },
    { name: "quarantine", title: "Quarantine", isFor: () => ofTenant() && may("payloads:read") },
    { name: "outboxes", title: "Outboxes", isFor: () => may("operator") }
  ],
  [
    { name: "policies", title: "Retry policies", isFor: () => ofTenant() && may("endpoints:read") },
    { name: "settings", title: "Settings", isFor: () => ofTenant() && may("endpoints:read") },
    { name: "tokens", title: "Tokens", isFor: () => ofTenant() && may("tokens:write") },
    { name: "audit", title: "Audit", isFor: () => may("operator") },
    { name: "system", title: "System", isFor: () => may("operator") }
  ]
]

/** True unless a page is for others than the session. */
export const isFor = (page: string): boolean =>
  groups
    .flat()
    .find(({ name }) => name === page)
    ?.isFor() !== false

/** The first page that the session may see; undefined where it may see none. */
export const firstPage = (): string | undefined => groups.flat().find(({ isFor }) => isFor())?.name

/** Returns what belongs to a name that the address has: no name is that of an object's own parts. */
export const named = <A,>(of: Readonly<Record<string, A>>, name: string): A | undefined =>
  Object.hasOwn(of, name) ? of[name] : undefined

const otherTitles: Readonly<Record<string, string>> = {
  attempts: "Attempts",
  events: "Events",
  start: "New job",
  login: "Log in"
}

/** The page that is shown: a portal for one endpoint begins there. */
export const shownPage = (): string =>
  path.value[0] ?? (session.value?.endpoint === undefined ? "" : "endpoints")

/** Returns what the browser calls a page. */
export const titleOf = (page: string): string =>
  groups.flat().find(({ name }) => name === page)?.title ?? named(otherTitles, page) ?? "No page"

/** Pages that belong to one of the above. */
const within: Readonly<Record<string, string>> = {
  attempts: "deliveries",
  events: "deliveries",
  start: "jobs"
}

const Nav = () => {
  const current = shownPage()
  const { brand, endpoint, name, tenant } = session.value ?? {}
  const shown = named(within, current) ?? current
  const shownGroups = groups
    .map((pages) => pages.filter(({ isFor }) => isFor()))
    .filter((pages) => pages.length > 0)
  const chosen = query.value.tenant ?? pathTenant.value
  const nav = useRef<HTMLElement>(null)
  const [staysBecause, stay] = useState<string>()
  // On a phone the pages are in one line, which is longer than the screen.
  useEffect(() => {
    const here = nav.current?.querySelector<HTMLElement>("[aria-current]")
    if (here != null) nav.current?.scrollTo({ left: here.offsetLeft - 48 })
  }, [shown])
  return (
    <nav aria-label="Pages" ref={nav}>
      <b>
        {brand?.logo !== undefined && <img src={brand.logo} alt="" height={20} />}
        {brand?.name ?? "Petrel"}
      </b>
      {shownGroups.map((pages, at) => (
        <Fragment key={at}>
          {at > 0 && <hr />}
          {pages.map((page) => (
            <a
              key={page.name}
              href={address(page.name === "" ? [] : [page.name], {
                tenant: tenant === "*" ? chosen : undefined
              })}
              aria-current={page.name === shown ? "page" : undefined}
            >
              {page.title}
            </a>
          ))}
        </Fragment>
      ))}
      <div class="foot">
        <div>
          {tenant === "*"
            ? "all tenants"
            : `${tenant}${endpoint === undefined ? "" : `/${endpoint}`}`}
        </div>
        {name !== undefined && <div>{name}</div>}
        <button type="button" class="plain" onClick={async () => stay(await logOut())}>
          Log out
        </button>
        {staysBecause !== undefined && (
          <div class="bad" role="alert">
            Still logged in: {staysBecause}
          </div>
        )}
      </div>
    </nav>
  )
}

/**
 * Returns the page of an endpoint whose id begins so, or of all of them; undefined where there is none.
 *
 * @param tenant whose they are, `*` for all.
 */
const endpointsPage = async (tenant: string, text: string): Promise<string | undefined> => {
  if (!may("endpoints:read")) return undefined
  const id = `${text}*`
  const { endpoints } = await petrel.endpoints.list({ tenant, id, limit: 2 }).page()
  const [first, ...others] = endpoints
  if (first === undefined) return undefined
  const isOne = others.length === 0 || (tenant !== "*" && first.id === text)
  return isOne
    ? address(["endpoints", first.tenant, first.id])
    : address(["endpoints"], { tenant: tenant === "*" ? undefined : tenant, id })
}

/**
 * Finds an event or a delivery by its id, or endpoints by the beginning of theirs, also as
 * `tenant/endpoint`. A delivery's id is that of its event and its endpoint, with a dot in between.
 */
const find = async (text: string): Promise<void> => {
  const wanted = text.trim()
  const [tenant = "", id = "", ...more] = wanted.split("/")
  if (wanted === "") return
  const isPlace = id !== "" && more.length === 0
  const own = shownTenant()
  const dot = wanted.lastIndexOf(".")
  const rest = wanted.slice(dot + 1)
  const deliveriesOf = async (event: string) =>
    may("deliveries:read")
      ? (await petrel.log.list({ tenant: own, event, limit: 200 }).page()).deliveries
      : []
  try {
    const isEvent = (await deliveriesOf(wanted)).length > 0
    const of = isEvent || dot === -1 ? [] : await deliveriesOf(wanted.slice(0, dot))
    const found = of.find(({ endpoint }) => endpoint === rest)
    if (found !== undefined) return go(address(["deliveries", found.tenant, found.delivery]))
    // An event's id may have a slash, too.
    if (isPlace && !isEvent)
      return go((await endpointsPage(tenant, id)) ?? address(["endpoints", tenant, id]))
    const page = isEvent || dot !== -1 ? undefined : await endpointsPage(own, wanted)
    if (page !== undefined) return go(page)
  } catch {
    // The page says why there is no answer.
    if (isPlace) return go(address(["endpoints", tenant, id]))
  }
  go(address(["deliveries"], { tenant: query.value.tenant, event: wanted }))
}

const keys = [
  ["/", "search"],
  ["j, k", "next and previous row"],
  ["Enter", "open the row"],
  ["g o, g d, g e", "overview, deliveries, endpoints"],
  ["g x, g j, g l", "dead letters, jobs, live"],
  ["?", "these keys"],
  ["Esc", "close"]
] as const

const goKeys: Readonly<Record<string, string>> = {
  o: "",
  d: "deliveries",
  e: "endpoints",
  x: "dead-letters",
  j: "jobs",
  l: "live"
}

const Keys = ({ close }: { readonly close: () => void }) => {
  const dialog = useRef<HTMLDialogElement>(null)
  useEffect(() => dialog.current?.showModal(), [])
  return (
    <dialog ref={dialog} onClose={close} aria-label="Keys">
      <h2>Keys</h2>
      <dl class="facts">
        {keys.map(([key, what]) => (
          <>
            <dt>
              {key.split(", ").map((one) => (
                <kbd key={one}>{one}</kbd>
              ))}
            </dt>
            <dd>{what}</dd>
          </>
        ))}
      </dl>
      <form method="dialog">
        <button type="submit">Close</button>
      </form>
    </dialog>
  )
}

/** Suggests tenants; more than these are typed. */
const mostSuggested = 200

/** Whose figures are shown: of all tenants, or of one. */
const TenantChoice = () => {
  const [isAsked, ask] = useState(false)
  // What is typed stays while suggestions come, with which this is drawn anew.
  const [typed, type] = useState<string>()
  const known = useAsked(`suggested tenants ${isAsked}`, async (options) =>
    isAsked ? (await petrel.system.tenants({ limit: mostSuggested }, options).page()).tenants : []
  )
  const choose = (text: string) => {
    const tenant = text.trim() || undefined
    type(undefined)
    // A page of one thing of a tenant has no counterpart of another one.
    if (pathTenant.value === undefined) filter({ tenant, cursor: undefined })
    else go(address([path.value[0] ?? ""], { tenant }))
  }
  return (
    <label class="chip">
      tenant{" "}
      <input
        class="short"
        list="tenants"
        value={typed ?? query.value.tenant ?? pathTenant.value ?? ""}
        placeholder="all"
        onFocus={() => ask(true)}
        onInput={(event) => type(event.currentTarget.value)}
        onChange={(event) => choose(event.currentTarget.value)}
        onBlur={() => type(undefined)}
      />
      <datalist id="tenants">
        {known.value?.map(({ tenant }) => (
          <option key={tenant} value={tenant} />
        ))}
      </datalist>
    </label>
  )
}

const Header = () => {
  const search = useRef<HTMLInputElement>(null)
  const [isHelped, help] = useState(false)
  useEffect(() => {
    let before = ""
    const onKey = (event: KeyboardEvent) => {
      if (event.key === "Escape" && event.target === search.current) search.current?.blur()
      if (isTyping(event)) return
      // What a dialog asks is answered before anything else.
      if (document.querySelector("dialog[open]") !== null) return
      if (event.key === "/") {
        event.preventDefault()
        search.current?.focus()
      }
      if (event.key === "?") help(true)
      if (event.key === "j" && before !== "g") moveInRows(1)
      if (event.key === "k") moveInRows(-1)
      const to = before === "g" ? goKeys[event.key] : undefined
      if (to !== undefined)
        go(address(to === "" ? [] : [to], { tenant: query.value.tenant ?? pathTenant.value }))
      before = to === undefined ? event.key : ""
    }
    addEventListener("keydown", onKey)
    return () => removeEventListener("keydown", onKey)
  }, [])
  const isOperator = session.value?.tenant === "*"
  return (
    <header>
      <search>
        <form
          onSubmit={(event) => {
            event.preventDefault()
            void find(search.current?.value ?? "")
          }}
        >
          <input
            ref={search}
            type="search"
            aria-label="Find an event, a delivery or an endpoint by its id"
            placeholder="Find an event, delivery or endpoint"
          />
          <kbd>/</kbd>
        </form>
      </search>
      {isOperator && <TenantChoice />}
      <button type="button" onClick={switchTimes} title="How times are shown">
        {isUtc.value ? "UTC" : "local time"}
      </button>
      <button type="button" onClick={switchTheme} title="Light, dark, or as the system">
        {theme.value === "system" ? "theme: system" : theme.value}
      </button>
      <button type="button" class="hide-s" onClick={() => help(true)} aria-label="Keys">
        ?
      </button>
      {isHelped && <Keys close={() => help(false)} />}
    </header>
  )
}

/** What surrounds each page. */
export const Frame = ({ children }: { readonly children: ComponentChildren }) => {
  const main = useRef<HTMLElement>(null)
  const shown = path.value.join("/")
  const [first] = useState(shown)
  const isFirst = useRef(true)
  // Who goes from page to page by keys goes on in the page, and not before all links again.
  useEffect(() => {
    if (!isFirst.current || shown !== first) main.current?.focus({ preventScroll: true })
    isFirst.current = false
  }, [shown])
  return (
    <div class="frame">
      <a class="skip" href="#page">
        Skip to the page
      </a>
      <Nav />
      <div>
        <Header />
        <main ref={main} id="page" tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  )
}
