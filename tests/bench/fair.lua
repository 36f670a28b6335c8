-- 99 callers, each about ten times a second.
function delay()
	return math.random(50, 150)
end
