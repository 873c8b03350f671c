import type { RouterContext } from '@koa/router';
import type Koa from 'koa';
import type { Endpoint } from './endpoint.js';
import type { Answer } from './presenter.js';

/** The state of a request, from its arrival to its answer. */
export interface Arrival {
  readonly path: string;
  readonly search: string;
  readonly requestId: string;
  readonly clientAddress: string;
  endpoint?: Endpoint;
  /** Set once known. */
  caller?: string;
  answer?: Answer;
}

export type ArrivalContext = RouterContext<Koa.DefaultState & { arrival?: Arrival }>;
