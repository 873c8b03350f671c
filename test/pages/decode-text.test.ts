import { expect, test } from 'vitest';
import { decodeText } from '../../src/pages/decode-text.js';

const html = 'text/html';
const latin = (text: string) => Buffer.from(text, 'latin1');

test.each([
  ['as its header says', Buffer.from('ü'), 'text/html; charset=UTF-8', 'ü'],
  ['as its header says, quoted', Buffer.from('ü'), 'text/html; charset="utf-8"', 'ü'],
  ['latin-1 as windows-1252', Buffer.from([0x80, 0xfc]), 'text/html; charset=ISO-8859-1', '€ü'],
  ['by its mark before its header', Buffer.from('\ufeffü'), 'text/html; charset=windows-1251', 'ü'],
  ['UTF-16 by its mark', Buffer.from('\ufeffü', 'utf16le'), html, 'ü'],
  [
    'by its header before its meta',
    latin('<meta charset=utf-8>é'),
    'text/html;charset=latin1',
    '<meta charset=utf-8>é',
  ],
  [
    'by its meta',
    Buffer.concat([latin('<meta charset="Shift_JIS">'), Buffer.from([0x93, 0xfa])]),
    html,
    '<meta charset="Shift_JIS">日',
  ],
  [
    'by its old meta',
    Buffer.concat([
      latin('<META http-equiv=x content="text/html; charset=gb2312">'),
      Buffer.from([0xd6, 0xd0]),
    ]),
    html,
    '<META http-equiv=x content="text/html; charset=gb2312">中',
  ],
  [
    'not by a meta in a comment',
    Buffer.from('<!--<meta charset=gb2312>-->ü'),
    html,
    '<!--<meta charset=gb2312>-->ü',
  ],
  [
    'as UTF-8 where its meta says UTF-16',
    Buffer.from('<meta charset=utf-16>ü'),
    html,
    '<meta charset=utf-16>ü',
  ],
  ['as UTF-8 where nothing is said', Buffer.from('ü'), undefined, 'ü'],
  ['as UTF-8 where nobody knows what is said', Buffer.from('ü'), 'text/html; charset=klingon', 'ü'],
  ['as windows-1252 where it cannot be UTF-8', latin('ü'), html, 'ü'],
])('decodes a page %s', (_how, bytes, contentType, text) => {
  expect(decodeText(bytes, contentType)).toBe(text);
});
