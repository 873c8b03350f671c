import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import http from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { Icecast } from '../../src/radio/icecast.js';
import { Random } from '../support/random.js';
import type { WorkPlan } from './work-plan.js';
import type { Work, WorkSite } from './work.js';

/** Milliseconds from the creation of a stream to its end, unless it stays. */
const LIFE_MS = 5_000;

/** Milliseconds in which Icecast is back. */
const BACK_MS = 5_000;

/** Milliseconds between two attempts of a source, a listener or a probe. */
const AGAIN_MS = 200;

/** Ways in which the life of a source ends; a source that `stays` is ended after the checks. */
const ENDS = ['removed', 'silent', 'stays'] as const;

interface Made {
  readonly stream: { readonly id: string; readonly listenUrl: string };
  readonly sourcePassword: string;
}

/** Sends to a stream with a listener: only Icecast's own death ends them early, and no ended stream is live. */
export async function requestRadio(site: WorkSite, key: string, plan: WorkPlan): Promise<Work> {
  const { owner, radio } = site;
  const way = new Random(plan.seed + 1).pick(ENDS);
  const made = await owner.ask<Made>('POST', '/api/radio/streams', key, { title: key });
  const { id, listenUrl } = made.stream;
  const { origin, pathname: mount } = new URL(listenUrl);
  const icecast = new Icecast({ url: origin, adminPassword: radio.adminPassword });
  const over = new AbortController();
  const source = keepSending(radio.ffmpeg, new URL(listenUrl), made.sourcePassword);
  const listener = keepListening(listenUrl, over.signal);
  const absence = measureAbsence(origin, over.signal);
  const remove = (attempt: string) =>
    owner.ask('DELETE', `/api/radio/streams?id=${id}`, `${key}-${attempt}`);
  const ending = delay(LIFE_MS).then(async () => {
    if (way === 'removed') await remove('removal');
    if (way === 'silent') await source.stop();
  });
  /** Returns undefined while the platform and Icecast differ. */
  const isLive = async () => {
    const path = '/api/radio/live';
    const { streams } = await owner.ask<{ streams: { id: string }[] }>('GET', path, '');
    const isListed = streams.some((each) => each.id === id);
    const isSent = (await icecast.sources()).some((each) => each.mount === mount);
    return isListed === isSent ? isListed : undefined;
  };
  return {
    async end() {
      await ending;
      const isWell =
        (await isLive()) === (way === 'stays') && listener.isHearing() === (way === 'stays');
      return isWell ? `${way}, Icecast was away for ${absence.longestMs()} ms` : undefined;
    },
    async problems() {
      const mayBeCut = (way === 'stays' ? 0 : 1) + (plan.part === 'icecast' ? 1 : 0);
      const isAsWanted = (await isLive()) === (way === 'stays');
      return [
        ...(listener.cuts() > mayBeCut
          ? [`the listener was cut off ${listener.cuts()} times`]
          : []),
        ...(absence.longestMs() > BACK_MS
          ? [`Icecast was away for ${absence.longestMs()} ms`]
          : []),
        ...(isAsWanted ? [] : [`the stream (${way}) is in the wrong state`]),
      ];
    },
    async remove() {
      over.abort();
      await source.stop();
      if (way !== 'removed') await remove('end');
    },
  };
}

/** Runs ffmpeg as the source of a stream, again whenever it ends. */
function keepSending(ffmpeg: string, { host, pathname }: URL, password: string) {
  const target = `icecast://source:${password}@${host}${pathname}`;
  const input = ['-re', '-f', 'lavfi', '-i', 'sine=duration=3600'];
  const output = ['-b:a', '128k', '-content_type', 'audio/mpeg', '-f', 'mp3', target];
  let child: ChildProcess | undefined;
  let isOver = false;
  const send = async () => {
    while (!isOver) {
      child = spawn(ffmpeg, [...input, ...output], { stdio: 'ignore' });
      await once(child, 'exit');
      await delay(AGAIN_MS);
    }
  };
  const ended = send();
  return {
    async stop() {
      isOver = true;
      child?.kill('SIGKILL');
      await ended;
    },
  };
}

/** Listens to a stream, again whenever the connection ends, and counts the connections that were cut off. */
function keepListening(url: string, over: AbortSignal) {
  let cuts = 0;
  let isHearing = false;
  const listen = () => {
    const request = http.get(url, { agent: false, signal: over }, (answer) => {
      if (answer.statusCode === 200) answer.once('data', () => (isHearing = true));
      answer.on('error', () => undefined).resume();
    });
    request.on('error', () => undefined);
    request.once('close', () => {
      if (over.aborted) return;
      if (isHearing) cuts++;
      isHearing = false;
      setTimeout(listen, AGAIN_MS);
    });
  };
  listen();
  return { cuts: () => cuts, isHearing: () => isHearing };
}

/** Measures for how long an address does not answer at a time, in milliseconds. */
function measureAbsence(url: string, over: AbortSignal) {
  let longestMs = 0;
  let answeredAt = performance.now();
  const ask = () => {
    const request = http.get(url, { agent: false, signal: over, timeout: 1_000 }, (answer) => {
      longestMs = Math.max(longestMs, Math.round(performance.now() - answeredAt));
      answeredAt = performance.now();
      answer.on('error', () => undefined).resume();
    });
    request.on('timeout', () => request.destroy());
    request.on('error', () => undefined);
    request.once('close', () => {
      if (!over.aborted) setTimeout(ask, AGAIN_MS);
    });
  };
  ask();
  return { longestMs: () => longestMs };
}
