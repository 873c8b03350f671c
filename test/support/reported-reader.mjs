// Follows instructions in the page: `letters N` is answered with N letters, anything else not at all.
process.on('message', ({ page }) => {
  const [what, count] = Buffer.from(page.bytes).toString().split(' ');
  if (what === 'letters') process.send({ value: 'x'.repeat(Number(count)) });
});
