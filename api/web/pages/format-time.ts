import { html, type Html } from '../../../src/lib/html.js';

const DAY_AND_TIME = new Intl.DateTimeFormat('en-GB', {
  day: 'numeric',
  month: 'long',
  year: 'numeric',
  hour: '2-digit',
  minute: '2-digit',
  timeZone: 'UTC',
  timeZoneName: 'short',
});

export const formatTime = (date: Date): Html =>
  html`<time datetime="${date.toISOString()}">${DAY_AND_TIME.format(date)}</time>`;
