import { Histogram, type Registry } from 'prom-client';

/** Seconds; the last bucket holds most streams of AI answers. */
const BUCKETS = [0.005, 0.02, 0.1, 0.25, 0.5, 1, 2.5, 10, 60];

const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS']);

/** Route of a request without an endpoint. */
const UNMATCHED = 'unmatched';

/** Status of an answer whose client left before its end. */
const ABORTED = 'aborted';

const LABELS = ['listener', 'method', 'route', 'status'] as const;

type Labels = Record<(typeof LABELS)[number], string>;

/** Notes the duration of one answered request. `route` is the declared path, undefined without an endpoint. */
export type NoteRequest = (
  method: string,
  route: string | undefined,
  status: number | undefined,
  seconds: number,
) => void;

/** Durations of requests, by listener. All label values come from closed sets. */
export class RequestSeconds {
  readonly #histogram: Histogram<keyof Labels>;

  constructor(registry: Registry) {
    this.#histogram = new Histogram({
      name: 'aps_http_request_seconds',
      help: 'Requests from their arrival to the end of their answers',
      labelNames: LABELS,
      buckets: BUCKETS,
      registers: [registry],
    });
  }

  /** Returns the function that notes a listener's requests; status undefined means that the client left. */
  of(listener: string): NoteRequest {
    const histogram = this.#histogram;
    // Cached, because making and hashing labels costs more than counting.
    const routes = new Map<string, Map<string, Map<number | undefined, Labels>>>();
    return (method, route = UNMATCHED, status, seconds) => {
      const known = METHODS.has(method) ? method : 'other';
      const methods = entry(
        routes,
        route,
        () => new Map<string, Map<number | undefined, Labels>>(),
      );
      const statuses = entry(methods, known, () => new Map<number | undefined, Labels>());
      const labels = entry(statuses, status, () => ({
        listener,
        method: known,
        route,
        status: status === undefined ? ABORTED : String(status),
      }));
      histogram.observe(labels, seconds);
    };
  }
}

function entry<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const found = map.get(key);
  if (found !== undefined) return found;
  const made = make();
  map.set(key, made);
  return made;
}
